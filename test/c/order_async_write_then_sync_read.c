/* The order of batches across threads: async ones are ordered against every
 * batch, whoever calls and whether or not anyone waits. */
#include "t.h"
#include "t_barrier.h"

#include <sys/syscall.h>

enum { ROUNDS = 10000, BLOCK = 4096 };
static int fd;
static char *wbuf, *rbuf;
static sem_t submitted, seen;

/* Thread B: a sync read after the semaphore must see thread A's async write. */
static void *reader(void *arg) {
  int wrong = 0;
  (void)arg;
  for (int i = 1; i <= ROUNDS; i++) {
    while (sem_wait(&submitted)) {
    }
    phxfs_io_req_t q = {fd, 0, rbuf, 0, BLOCK, 0, 0};
    CHECK_EQ(phxfs_read_batch(&q, 1), 0, "round %d", i);
    int first = ((volatile int *)t_host(rbuf))[0], last = ((volatile int *)t_host(rbuf))[BLOCK / 4 - 1];
    if ((first != i || last != i) && wrong++ < 3) t_fail(__FILE__, __LINE__, "round %d: the read saw %d .. %d", i, first, last);
    sem_post(&seen);
  }
  CHECK_EQ(wrong, 0, "rounds that saw old data, of %d", ROUNDS);
  return NULL;
}

static void ten_thousand_rounds(void) {
  pthread_t t;
  sem_init(&submitted, 0, 0), sem_init(&seen, 0, 0);
  pthread_create(&t, NULL, reader, NULL);
  for (int i = 1; i <= ROUNDS; i++) {
    int *words = t_host(wbuf);
    for (int k = 0; k < BLOCK / 4; k++) words[k] = i;
    /* Several batches, so that the last one is still queued when B comes. */
    phxfs_io_req_t q[4];
    phxfs_batch_t *h[4];
    for (int k = 0; k < 4; k++) {
      q[k] = (phxfs_io_req_t){fd, 0, wbuf, 0, BLOCK, k == 3 ? 0 : (k + 1) * BLOCK, 0};
      h[k] = phxfs_batch_submit_write(&q[k], 1);
      if (!h[k]) t_fail(__FILE__, __LINE__, "round %d, submit %d: %s", i, k, t_errno(errno));
    }
    sem_post(&submitted);
    if (i % 2) while (sem_wait(&seen)) {} /* half of the rounds: nobody waits before B has read */
    for (int k = 0; k < 4; k++) CHECK_EQ(phxfs_batch_wait(h[k]), 0, "round %d, batch %d", i, k);
    if (i % 2 == 0) while (sem_wait(&seen)) {}
  }
  pthread_join(t, NULL);
}

/* On one thread: async write i, async read, async write i + 1, none waited for.
 * The read sees i, neither less nor more. */
static void async_batches_run_in_the_order_of_their_submits(void) {
  for (int i = 1; i <= 1000 && !t_failed(); i++) {
    int v[4] = {2 * i, -1, 2 * i + 1, -1};
    phxfs_io_req_t w0 = {fd, -1, &v[0], 0, 4, 0, 0}, r0 = {fd, -1, &v[1], 0, 4, 0, 0};
    phxfs_io_req_t w1 = {fd, -1, &v[2], 0, 4, 0, 0}, r1 = {fd, -1, &v[3], 0, 4, 0, 0};
    phxfs_batch_t *h[4] = {phxfs_batch_submit_write(&w0, 1), phxfs_batch_submit_read(&r0, 1),
                           phxfs_batch_submit_write(&w1, 1), phxfs_batch_submit_read(&r1, 1)};
    for (int k = 3; k >= 0; k--) CHECK_EQ(phxfs_batch_wait(h[k]), 0, "round %d, batch %d", i, k);
    CHECK_EQ(v[1], v[0], "the first read, round %d", i);
    CHECK_EQ(v[3], v[2], "the second read, round %d", i);
  }
}

struct sync_call {
  phxfs_io_req_t q;
  bool write;
  atomic_int tid, done;
  int got;
};
static void *sync_call(void *arg) {
  struct sync_call *c = arg;
  c->tid = (int)syscall(SYS_gettid);
  c->got = c->write ? phxfs_write_batch(&c->q, 1) : phxfs_read_batch(&c->q, 1);
  c->done = 1;
  return NULL;
}

/* A sync batch stands still; an async write behind it must not start, and a
 * sync read behind the write neither: it would see the old data. */
static void async_waits_for_sync_and_sync_for_async(void) {
  t_barrier b;
  pthread_t t[2];
  int value = 0x1111, found = -1, probe = -1;
  char *stuck = t_map(T_PAGE);
  NEED_BARRIER(&b, stuck, 4096);
  CHECK_EQ(pwrite(fd, &(int){0x2222}, 4, 0), 4, "old data");
  struct sync_call first = {.q = {fd, -1, stuck, 0, 4096, 4096, 0}};
  struct sync_call last = {.q = {fd, -1, &found, 0, 4, 0, 0}};
  pthread_create(&t[0], NULL, sync_call, &first);
  CHECK(t_barrier_reached(&b), "the sync read stands");
  phxfs_io_req_t w = {fd, -1, &value, 0, 4, 0, 111};
  phxfs_batch_t *h = phxfs_batch_submit_write(&w, 1);
  CHECK(h != NULL, "submit: %s", t_errno(errno));
  pthread_create(&t[1], NULL, sync_call, &last);
  CHECK(T_EVENTUALLY(last.done || (last.tid && t_asleep(last.tid))), "the second sync read waits");
  CHECK(!last.done, "the second sync read has overtaken the async write");
  CHECK_EQ(pread(fd, &probe, 4, 0), 4, "the file");
  CHECK_EQ(probe, 0x2222, "the async write has overtaken the sync read before it");
  CHECK(!first.done, "the barrier holds");
  t_barrier_release(&b);
  pthread_join(t[0], NULL), pthread_join(t[1], NULL);
  CHECK_EQ(phxfs_batch_wait(h), 0, "the write");
  CHECK_EQ(found, 0x1111, "what the second sync read saw");
  CHECK_EQ(first.got + last.got, 0, "failed requests");
  t_unmap(stuck, T_PAGE);
}

/* Without an async batch around, a sync batch that stands still holds up nobody. */
static void sync_batches_run_side_by_side(void) {
  t_barrier b;
  pthread_t t;
  char *stuck = t_map(T_PAGE);
  NEED_BARRIER(&b, stuck, 4096);
  struct sync_call first = {.q = {fd, -1, stuck, 0, 4096, 4096, 0}};
  pthread_create(&t, NULL, sync_call, &first);
  CHECK(t_barrier_reached(&b), "the sync read stands");
  for (int i = 0; i < 10; i++) {
    phxfs_io_req_t q[40];
    for (int k = 0; k < 40; k++) q[k] = (phxfs_io_req_t){fd, 0, rbuf, 0, 4096, 0, 0};
    CHECK_OK(phxfs_read_batch(q, i < 5 ? 1 : 40), 0, "beside it, %d", i);
  }
  CHECK(!first.done, "the barrier holds");
  t_barrier_release(&b);
  pthread_join(t, NULL);
  CHECK_EQ(first.got, 0, "failed requests");
  t_unmap(stuck, T_PAGE);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(ten_thousand_rounds), T_CASE(async_batches_run_in_the_order_of_their_submits),
    T_CASE(async_waits_for_sync_and_sync_for_async), T_CASE(sync_batches_run_side_by_side),
  };
  void *target;
  t_use_host();
  fd = t_file(8 * BLOCK, 1);
  wbuf = t_map(T_PAGE), rbuf = t_map(T_PAGE);
  if (phxfs_open(0) || phxfs_regmem(0, wbuf, T_PAGE, &target) || phxfs_regmem(0, rbuf, T_PAGE, &target)) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
