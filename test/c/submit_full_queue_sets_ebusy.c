/* The bound of the async queue: 16 batches with I/O queued or running. */
#include "t.h"
#include "t_barrier.h"

#include <sys/syscall.h>

enum { MOST = 16 };
static char *cpu, *dev, *stuck;
static int fd; /* 64 KiB of pattern 1 */

static phxfs_batch_t *submit(phxfs_io_req_t *q) { return phxfs_batch_submit_read(q, 1); }

struct call {
  phxfs_io_req_t *q;
  atomic_int tid, done;
  int got;
};
static void *sync_batch(void *arg) {
  struct call *c = arg;
  c->tid = (int)syscall(SYS_gettid);
  c->got = phxfs_read_batch(c->q, 1);
  c->done = 1;
  return NULL;
}

/* One batch stands at the barrier, 15 wait behind it: the state is exact. */
static void the_seventeenth_is_refused(void) {
  t_barrier b;
  phxfs_io_req_t q[MOST + 1], bad = {fd, 0, NULL, 0, 16, 0, 111}, sync = {fd, 0, dev, 4096, 4096, 0, 0};
  phxfs_batch_t *h[MOST];
  NEED_BARRIER(&b, stuck, 4096);
  for (int i = 0; i <= MOST; i++) q[i] = (phxfs_io_req_t){fd, i ? 0 : -1, i ? dev : stuck, 0, 4096, 0, 111};
  q[MOST].buf_offset = 8192;
  h[0] = submit(&q[0]);
  CHECK(h[0] && t_barrier_reached(&b), "the first batch's I/O has begun");
  for (int i = 1; i < MOST; i++) CHECK_OK((h[i] = submit(&q[i])) != NULL, 1, "batch %d of 16", i + 1);
  for (int i = 0; i < 3; i++) {
    CHECK_NULL(phxfs_batch_submit_read(&q[MOST], 1), EBUSY, "the 17th read");
    CHECK_NULL(phxfs_batch_submit_write(&q[MOST], 1), EBUSY, "the 17th write");
  }
  CHECK_EQ(q[MOST].result, 111, "a refused batch's result");
  /* A refused batch with a bad request in it: nothing is written either. */
  phxfs_io_req_t mixed[2] = {{fd, 0, dev, 0, 16, 0, 111}, bad};
  CHECK_NULL(phxfs_batch_submit_read(mixed, 2), EBUSY, "good and bad");
  CHECK_EQ(mixed[1].result, 111, "bad request of a refused batch");
  /* Without a request that can run, no place is needed. */
  phxfs_batch_t *none = NULL, *only_bad = NULL;
  CHECK_OK((none = phxfs_batch_submit_read(NULL, 0)) != NULL, 1, "n 0");
  CHECK_OK((only_bad = submit(&bad)) != NULL, 1, "only a bad request");
  CHECK_OK(phxfs_batch_wait(none), 0, "n 0");
  CHECK_OK(phxfs_batch_wait(only_bad), 1, "only a bad request");
  CHECK_EQ(bad.result, -EFAULT, "only a bad request");
  /* Single transfers are not queued. */
  CHECK_OK(phxfs_read(fd, 0, dev, 8192, 4096, 0), 4096, "single read, device");
  CHECK_OK(phxfs_read(fd, -1, cpu, 0, 4096, 0), 4096, "single read, CPU");
  /* A sync batch is not refused: it waits its turn. */
  pthread_t t;
  struct call c = {.q = &sync};
  pthread_create(&t, NULL, sync_batch, &c);
  CHECK(T_EVENTUALLY(c.done || (c.tid && t_asleep(c.tid))), "the sync batch waits");
  CHECK(!c.done, "the sync batch returned %d before the async ones", c.got);
  t_barrier_release(&b);
  pthread_join(t, NULL);
  CHECK_EQ(c.got, 0, "the sync batch");
  /* It has the latest ticket: all 16 are complete, and none was waited for. All
   * places are free again. */
  phxfs_io_req_t more[MOST];
  phxfs_batch_t *m[MOST];
  for (int i = 0; i < MOST; i++) {
    more[i] = (phxfs_io_req_t){fd, 0, dev, 0, 4096, 0, 111};
    CHECK_OK((m[i] = submit(&more[i])) != NULL, 1, "batch %d, the first 16 are done but not waited for", i + 17);
  }
  for (int i = 0; i < MOST; i++) CHECK_OK(phxfs_batch_wait(h[i]), 0, "batch %d", i + 1);
  for (int i = 0; i < MOST; i++) CHECK_OK(phxfs_batch_wait(m[i]), 0, "batch %d", i + 17);
}

/* Nobody waits for anything, and yet places come free. */
static void batches_progress_without_a_waiter(void) {
  enum { N = 3000 };
  static phxfs_io_req_t q[N];
  static phxfs_batch_t *h[N];
  int refused = 0;
  for (int i = 0; i < N; i++) {
    q[i] = (phxfs_io_req_t){fd, 0, dev, i % 8 * 4096, 4096, i, 111};
    CHECK(T_EVENTUALLY((h[i] = submit(&q[i])) != NULL || (refused++, errno != EBUSY)), "batch %d: no place comes free", i);
    NEED(h[i], "batch %d: %s", i, t_errno(errno));
  }
  /* 3000 handles, complete or nearly so; the last submitted is waited for first. */
  for (int i = N - 1; i >= 0; i--) {
    CHECK_OK(phxfs_batch_wait(h[i]), 0, "batch %d", i);
    CHECK_EQ(q[i].result, 4096, "batch %d (refused meanwhile: %d)", i, refused);
  }
}

/* The order of waiting is free while batches are still queued. */
static void waits_in_any_order(void) {
  t_barrier b;
  phxfs_io_req_t q[MOST];
  phxfs_batch_t *h[MOST];
  NEED_BARRIER(&b, stuck, 4096);
  for (int i = 0; i < MOST; i++) {
    q[i] = (phxfs_io_req_t){fd, i ? 0 : -1, i ? dev : stuck, i ? i * 4096 : 0, 4096, i * 1000, 111};
    NEED((h[i] = submit(&q[i])), "batch %d: %s", i, t_errno(errno));
  }
  CHECK(t_barrier_reached(&b), "the first stands");
  t_barrier_release(&b);
  for (int i = 0; i < MOST; i++) CHECK_OK(phxfs_batch_wait(h[i * 5 % MOST]), 0, "batch %d", i * 5 % MOST);
  for (int i = 1; i < MOST; i++) CHECK_DATA(dev + i * 4096, 4096, 1, (uint64_t)i * 1000, "batch %d", i);
}

static void no_place_is_lost(void) {
  t_leaks before;
  for (int round = 0; round < 3; round++) {
    if (round == 1) t_leaks_take(&before);
    batches_progress_without_a_waiter();
    the_seventeenth_is_refused();
    if (t_failed()) return;
  }
  CHECK_NO_LEAKS(&before, 8, 16, "9000 batches");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(the_seventeenth_is_refused), T_CASE(batches_progress_without_a_waiter), T_CASE(waits_in_any_order),
    T_CASE(no_place_is_lost),
  };
  void *target;
  t_use_host();
  cpu = t_map(T_PAGE), dev = t_map(2 * T_PAGE), stuck = t_map(T_PAGE), fd = t_file(T_PAGE, 1);
  if (phxfs_open(0) || phxfs_regmem(0, dev, 2 * T_PAGE, &target)) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
