/* What is refused, and what waits, while the last dereg or the last close of a
 * device waits for I/O that stands still. */
#include "t.h"
#include "t_barrier.h"

#include <sys/syscall.h>

static char *m; /* 4 pages; [0,2) is the registration, its first page the barrier */
static const size_t LEN = 2 * T_PAGE;
static int fd; /* 64 KiB of pattern 1 */

enum what { READ, DEREG, REGMEM, CLOSE, WAIT };
struct call {
  enum what what;
  phxfs_batch_t *h;
  pthread_t thread;
  atomic_int tid, done;
  long got;
  int err;
  void *target;
};

static void *run(void *arg) {
  struct call *c = arg;
  errno = 0;
  c->tid = (int)syscall(SYS_gettid);
  switch (c->what) {
  case READ: c->got = phxfs_read(fd, 0, m, 0, 4096, 100); break;
  case DEREG: c->got = phxfs_deregmem(0, m, LEN); break;
  case REGMEM: c->got = phxfs_regmem(0, m, LEN, &c->target); break;
  case CLOSE: c->got = phxfs_close(0); break;
  case WAIT: c->got = phxfs_batch_wait(c->h); break;
  }
  c->err = errno;
  c->done = 1;
  return NULL;
}
static void start(struct call *c) { pthread_create(&c->thread, NULL, run, c); }
static bool waits(struct call *c) {
  return T_EVENTUALLY(c->done || (c->tid && t_asleep(c->tid))) && !c->done;
}
static void finish(struct call *c, long want, const char *who) {
  pthread_join(c->thread, NULL);
  t_int(__FILE__, __LINE__, who, c->got, want, c->err, 0, "the call that waited");
}

/* Single read of 16 bytes from the registration's second page: is it accepted? */
static bool refused(void) { return phxfs_read(fd, 0, m + T_PAGE, 0, 16, 0) != 16; }

static bool set_up(t_barrier *b) {
  void *target;
  CHECK_OK(phxfs_open(0), 0, "0");
  CHECK_OK(phxfs_regmem(0, m, LEN, &target), 0, "the registration");
  const char *why = t_barrier_arm(b, m, 4096);
  if (!why) return true;
  t_skip(__FILE__, __LINE__, "userfaultfd", "%s", why);
  CHECK_OK(phxfs_close(0), 0, "0");
  return false;
}

static void during_the_last_dereg(void) {
  t_barrier b;
  struct call read = {.what = READ}, dereg = {.what = DEREG}, again = {.what = REGMEM};
  void *target = (void *)0x5a;
  if (!set_up(&b)) return;
  start(&read);
  CHECK(t_barrier_reached(&b), "the read stands");
  start(&dereg);
  CHECK(T_EVENTUALLY(refused()), "new I/O is refused once the dereg has begun");
  CHECK_ERR(phxfs_read(fd, 0, m + T_PAGE, 0, 16, 0), -1, EFAULT, "single read");
  CHECK_ERR(phxfs_write(fd, 0, m + T_PAGE, 0, 16, 0), -1, EFAULT, "single write");
  phxfs_io_req_t q = {fd, 0, m + T_PAGE, 0, 16, 0, 0};
  CHECK_OK(phxfs_read_batch(&q, 1), 1, "batch");
  CHECK_EQ(q.result, -EFAULT, "batch");
  CHECK_ERR(phxfs_deregmem(0, m, LEN), -1, ENOENT, "a second last dereg");
  CHECK_ERR(phxfs_regmem(0, m + T_PAGE, LEN, &target), -EINVAL, EINVAL, "overlap");
  CHECK_ERR(phxfs_regmem(0, m, T_PAGE, &target), -EINVAL, EINVAL, "overlap, same start");
  CHECK_EQ((intptr_t)target, 0x5a, "*target_addr");
  CHECK_OK(phxfs_regmem(0, m + LEN, T_PAGE, &target), 0, "a neighbour is none of it");
  CHECK_OK(phxfs_deregmem(0, m + LEN, T_PAGE), 0, "the neighbour");
  start(&again);
  CHECK(waits(&again), "the exact duplicate waits; it returned %ld", again.got);
  CHECK(waits(&dereg), "the dereg waits; it returned %ld", dereg.got);
  CHECK(!read.done, "the barrier holds");
  t_barrier_release(&b);
  finish(&read, 4096, "read");
  if (!t_emulated()) CHECK_DATA(m, 4096, 1, 100, "the read"); /* else the target may be gone */
  finish(&dereg, 0, "dereg");
  finish(&again, 0, "regmem of the duplicate");
  CHECK_EQ((intptr_t)again.target, (intptr_t)t_host(m), "its target");
  CHECK_OK(phxfs_read(fd, 0, m, 0, 4096, 7), 4096, "the fresh registration");
  CHECK_OK(phxfs_deregmem(0, m, LEN), 0, "its one reference");
  CHECK_ERR(phxfs_deregmem(0, m, LEN), -1, ENOENT, "no second reference");
  CHECK_OK(phxfs_close(0), 0, "0");
}

/* Not the last reference: nothing waits, nothing is refused. */
static void a_dereg_that_is_not_the_last_does_not_wait(void) {
  t_barrier b;
  void *target;
  struct call read = {.what = READ};
  if (!set_up(&b)) return;
  CHECK_OK(phxfs_regmem(0, m, LEN, &target), 0, "a second reference");
  start(&read);
  CHECK(t_barrier_reached(&b), "the read stands");
  CHECK_OK(phxfs_deregmem(0, m, LEN), 0, "the second reference");
  CHECK(!refused(), "I/O goes on");
  CHECK_OK(phxfs_open(0), 0, "a second count");
  CHECK_OK(phxfs_close(0), 0, "not the last");
  t_barrier_release(&b);
  finish(&read, 4096, "read");
  CHECK_OK(phxfs_close(0), 0, "0");
}

static void during_the_last_close(void) {
  t_barrier b;
  struct call read = {.what = READ}, close = {.what = CLOSE};
  void *target = (void *)0x5a;
  if (!set_up(&b)) return;
  start(&read);
  CHECK(t_barrier_reached(&b), "the read stands");
  start(&close);
  CHECK(T_EVENTUALLY(refused()), "new I/O is refused once the close has begun");
  CHECK_ERR(phxfs_read(fd, 0, m + T_PAGE, 0, 16, 0), -1, ESHUTDOWN, "single read");
  phxfs_io_req_t q = {fd, 0, m + T_PAGE, 0, 16, 0, 0};
  CHECK_OK(phxfs_read_batch(&q, 1), 1, "batch");
  CHECK_EQ(q.result, -EFAULT, "batch");
  for (int i = 0; i < 3; i++) CHECK_ERR(phxfs_open(0), -EBUSY, EBUSY, "open");
  CHECK_EQ(phxfs_close(0), -1, "a second last close");
  CHECK_EQ(phxfs_regmem(0, m + LEN, T_PAGE, &target), -EINVAL, "regmem on a closing device");
  CHECK_EQ((intptr_t)target, 0x5a, "*target_addr");
  CHECK_EQ(phxfs_deregmem(0, m, LEN), -1, "dereg on a closing device");
  CHECK_OK(phxfs_open(1), 0, "another device is none of it");
  CHECK_OK(phxfs_close(1), 0, "another device");
  CHECK(waits(&close), "the close waits; it returned %ld", close.got);
  t_barrier_release(&b);
  finish(&read, 4096, "read");
  finish(&close, 0, "close");
  CHECK_ERR(phxfs_close(0), -1, ENODEV, "closed");
  CHECK_OK(phxfs_open(0), 0, "open, now");
  CHECK_ERR(phxfs_deregmem(0, m, LEN), -1, ENOENT, "the registration is gone");
  CHECK_OK(phxfs_close(0), 0, "0");
}

/* The I/O of an async batch holds the registration; its wait does not. */
static void an_async_batch_holds_the_registration(void) {
  t_barrier b;
  struct call dereg = {.what = DEREG}, wait = {.what = WAIT};
  if (!set_up(&b)) return;
  phxfs_io_req_t q[2] = {{fd, 0, m, 0, 4096, 9, 111}, {fd, 0, m + T_PAGE, 0, 4096, 0, 111}};
  phxfs_batch_t *h = phxfs_batch_submit_read(q, 2);
  CHECK(h && t_barrier_reached(&b), "the batch's I/O stands");
  start(&dereg);
  CHECK(T_EVENTUALLY(refused()), "new I/O is refused");
  CHECK(waits(&dereg), "the dereg waits; it returned %ld", dereg.got);
  wait.h = h;
  start(&wait);
  CHECK(waits(&wait), "the wait waits; it returned %ld", wait.got);
  t_barrier_release(&b);
  finish(&dereg, 0, "dereg");
  finish(&wait, 0, "wait");
  CHECK_EQ(q[0].result, 4096, "result");
  if (!t_emulated()) CHECK_DATA(m, 4096, 1, 9, "data");
  CHECK_OK(phxfs_close(0), 0, "0");
}

/* A batch that was queued before the dereg still runs; one that comes later does not. */
static void queued_batches_are_inside(void) {
  t_barrier b;
  struct call dereg = {.what = DEREG};
  char *other = t_map(T_PAGE);
  if (!set_up(&b)) return;
  t_barrier_release(&b);
  if (t_barrier_arm(&b, other, 4096)) return;
  phxfs_io_req_t head = {fd, -1, other, 0, 4096, 0, 111}, q = {fd, 0, m, 0, 4096, 3, 111};
  phxfs_batch_t *first = phxfs_batch_submit_read(&head, 1), *h = phxfs_batch_submit_read(&q, 1);
  CHECK(first && h && t_barrier_reached(&b), "the first stands, the second is queued");
  start(&dereg);
  CHECK(T_EVENTUALLY(refused()), "new I/O is refused");
  CHECK(waits(&dereg), "the dereg waits for a batch that has not begun; it returned %ld", dereg.got);
  t_barrier_release(&b);
  finish(&dereg, 0, "dereg");
  if (!t_emulated()) CHECK_DATA(m, 4096, 1, 3, "its I/O was done before the dereg returned");
  CHECK_OK(phxfs_batch_wait(h), 0, "second");
  CHECK_OK(phxfs_batch_wait(first), 0, "first");
  CHECK_OK(phxfs_close(0), 0, "0");
  t_unmap(other, T_PAGE);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(during_the_last_dereg), T_CASE(a_dereg_that_is_not_the_last_does_not_wait),
    T_CASE(during_the_last_close), T_CASE(an_async_batch_holds_the_registration),
    T_CASE(queued_batches_are_inside),
  };
  t_use_host();
  m = t_map(4 * T_PAGE), fd = t_file(T_PAGE, 1);
  return T_RUN(argc, argv, cases, NULL);
}
