/* A handle and everything that may happen between its submit and its wait. */
#include "t.h"
#include "t_barrier.h"

#include <sys/syscall.h>

static char *dev; /* 64 KiB */
static int fd;    /* 64 KiB of pattern 1 */
static void *target;

/* The gate of a registration is left when the I/O is done: a dereg before the
 * wait, on the same thread, does not wait for the wait. */
static void submit_deregmem_wait_in_one_thread(void) {
  CHECK_OK(phxfs_open(0), 0, "0");
  for (int round = 0; round < 300; round++) {
    CHECK_OK(phxfs_regmem(0, dev, T_PAGE, &target), 0, "round %d", round);
    memset(t_host(dev), 0, T_PAGE);
    phxfs_io_req_t q[2] = {{fd, 0, dev, 0, 32768, 0, 111}, {fd, 0, dev, 32768, 32768, 32768, 111}};
    phxfs_batch_t *h = phxfs_batch_submit_read(q, 2);
    NEED(h, "submit: %s", t_errno(errno));
    CHECK_OK(phxfs_deregmem(0, dev, T_PAGE), 0, "round %d", round);
    if (!t_emulated()) CHECK_DATA(dev, T_PAGE, 1, 0, "the I/O was done before dereg returned, round %d", round);
    CHECK_EQ(q[0].result, 111, "not waited for yet");
    CHECK_OK(phxfs_batch_wait(h), 0, "round %d", round);
    CHECK_EQ(q[1].result, 32768, "round %d", round);
    if (t_failed()) break;
  }
  CHECK_OK(phxfs_close(0), 0, "0");
}

static void submit_close_wait_in_one_thread(void) {
  for (int round = 0; round < 300; round++) {
    CHECK_OK(phxfs_open(0), 0, "round %d", round);
    CHECK_OK(phxfs_regmem(0, dev, T_PAGE, &target), 0, "round %d", round);
    memset(t_host(dev), 0, T_PAGE);
    phxfs_io_req_t q = {fd, 0, dev, 0, T_PAGE, 0, 111};
    phxfs_batch_t *h = phxfs_batch_submit_read(&q, 1);
    NEED(h, "submit: %s", t_errno(errno));
    CHECK_OK(phxfs_close(0), 0, "round %d", round);
    if (!t_emulated()) CHECK_DATA(dev, T_PAGE, 1, 0, "the I/O was done before close returned, round %d", round);
    CHECK_ERR(phxfs_close(0), -1, ENODEV, "round %d", round);
    CHECK_OK(phxfs_batch_wait(h), 0, "round %d", round);
    CHECK_EQ(q.result, T_PAGE, "round %d", round);
    if (t_failed()) break;
  }
}

static void *submit_in_thread(void *q) { return phxfs_batch_submit_read(q, 1); }

static void the_submitting_thread_may_end(void) {
  pthread_t t;
  void *h;
  for (int round = 0; round < 200; round++) {
    phxfs_io_req_t q = {fd, -1, dev, 0, 4096, round, 111};
    pthread_create(&t, NULL, submit_in_thread, &q);
    pthread_join(t, &h);
    CHECK_OK(phxfs_batch_wait(h), 0, "round %d", round);
    CHECK_DATA(dev, 4096, 1, (uint64_t)round, "round %d", round);
  }
}

/* Used handles stay dead while their places in the table are used again. */
static void stale_handles_stay_stale(void) {
  enum { N = 1000 };
  static phxfs_batch_t *old[N], *new[N];
  phxfs_io_req_t bad = {fd, -1, NULL, 0, 16, 0, 0}; /* needs no I/O */
  for (int i = 0; i < N; i++) NEED((old[i] = phxfs_batch_submit_read(&bad, 1)), "%d: %s", i, t_errno(errno));
  for (int i = 0; i < N; i++) CHECK_OK(i % 2 ? phxfs_batch_wait(old[i]) : phxfs_batch_destroy(old[i]), i % 2, "%d", i);
  for (int i = 0; i < N; i++) NEED((new[i] = phxfs_batch_submit_read(&bad, 1)), "%d: %s", i, t_errno(errno));
  for (int i = 0; i < N; i++) {
    CHECK_ERR(phxfs_batch_wait(old[i]), -EINVAL, EINVAL, "used handle %d", i);
    CHECK_ERR(phxfs_batch_destroy(old[i]), -EINVAL, EINVAL, "used handle %d", i);
  }
  for (int i = 0; i < N; i++) CHECK_OK(phxfs_batch_wait(new[i]), 1, "new handle %d", i);
}

/* One place of the table, used a hundred thousand times: the first handle of
 * them all is still recognised as used. */
static void handles_do_not_come_round_soon(void) {
  phxfs_batch_t *first = phxfs_batch_submit_read(NULL, 0);
  CHECK_OK(phxfs_batch_wait(first), 0, "first");
  for (int i = 0; i < 100000; i++) {
    phxfs_batch_t *h = phxfs_batch_submit_read(NULL, 0);
    NEED(h && h != first, "handle %d equals one that was used before", i);
    if (phxfs_batch_destroy(h)) CHECK(0, "handle %d", i);
  }
  CHECK_ERR(phxfs_batch_wait(first), -EINVAL, EINVAL, "used 100,000 handles ago");
}

struct wait {
  phxfs_batch_t *h;
  int (*end)(phxfs_batch_t *);
  atomic_int tid, done;
  int got, err;
};
static void *wait_for(void *arg) {
  struct wait *w = arg;
  errno = 0;
  w->tid = (int)syscall(SYS_gettid);
  w->got = w->end(w->h);
  w->err = errno;
  w->done = 1;
  return NULL;
}

/* Two threads end one handle while its I/O stands still: one is refused at
 * once, the other waits and gets the answer. */
static void race(int (*one)(phxfs_batch_t *), int (*two)(phxfs_batch_t *), bool results) {
  t_barrier b;
  pthread_t t[2];
  char *stuck = t_map(T_PAGE);
  phxfs_io_req_t q[2] = {{fd, -1, stuck, 0, 4096, 512, 111}, {-1, -1, stuck, 8192, 16, 0, 111}};
  NEED_BARRIER(&b, stuck, 4096);
  struct wait w[2] = {{.end = one}, {.end = two}};
  w[0].h = w[1].h = phxfs_batch_submit_read(q, 2);
  CHECK(w[0].h && t_barrier_reached(&b), "the I/O has begun");
  for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, wait_for, &w[i]);
  CHECK(T_EVENTUALLY(w[0].done || w[1].done), "one is refused at once");
  int lost = w[0].done ? 0 : 1;
  CHECK_EQ(w[lost].got, -EINVAL, "the loser");
  CHECK_EQ(w[lost].err, EINVAL, "the loser's errno");
  CHECK(T_EVENTUALLY(w[!lost].done || (w[!lost].tid && t_asleep(w[!lost].tid))), "the winner waits");
  CHECK(!w[!lost].done, "both have returned before the I/O was done: %d and %d", w[0].got, w[1].got);
  t_barrier_release(&b);
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  CHECK_EQ(w[!lost].got, w[!lost].end == phxfs_batch_wait ? 1 : 0, "the winner");
  if (results) {
    CHECK_EQ(q[0].result, 4096, "result");
    CHECK_EQ(q[1].result, -EBADF, "result");
  }
  CHECK_DATA(stuck, 4096, 1, 512, "the I/O was done");
  t_unmap(stuck, T_PAGE);
}

static void two_threads_wait(void) { race(phxfs_batch_wait, phxfs_batch_wait, true); }
static void two_threads_destroy(void) { race(phxfs_batch_destroy, phxfs_batch_destroy, false); }
static void wait_against_destroy(void) { race(phxfs_batch_wait, phxfs_batch_destroy, false); }

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(submit_deregmem_wait_in_one_thread), T_CASE(submit_close_wait_in_one_thread),
    T_CASE(the_submitting_thread_may_end),      T_CASE(stale_handles_stay_stale),
    T_CASE(handles_do_not_come_round_soon),     T_CASE(two_threads_wait),
    T_CASE(two_threads_destroy),                T_CASE(wait_against_destroy),
  };
  t_use_host();
  dev = t_map(T_PAGE), fd = t_file(T_PAGE, 1);
  return T_RUN(argc, argv, cases, NULL);
}
