/* 32 threads do everything at once on all eight devices; all data is verified. */
#include "t.h"

#include <fcntl.h>

enum { THREADS = 32, ROUNDS = 60, REQS = 24 };
static const size_t LEN = 8 * T_PAGE;
static int shared; /* 1 MiB of pattern 50, read by all */
static pthread_barrier_t start;

static uint32_t next(uint32_t *r) { return *r = *r * 1664525u + 1013904223u, *r >> 8; }

struct self {
  int no, device, own; /* own: a file of this thread */
  char *m;             /* LEN bytes, registered */
  char *cpu;           /* as much, not registered */
  uint32_t random;
};

static void sync_round(struct self *s, int round) {
  phxfs_io_req_t q[REQS];
  int n = 1 + (int)(next(&s->random) % REQS), bad = -1;
  for (int i = 0; i < n; i++) {
    size_t len = 1 + next(&s->random) % 16000;
    q[i] = (phxfs_io_req_t){shared, i % 3 ? s->device : -1, i % 3 ? s->m : s->cpu, i * 20000, len, (off_t)(next(&s->random) % 1000000), -1};
  }
  if (round % 5 == 0) q[bad = n / 2].buf = NULL;
  CHECK_EQ(phxfs_read_batch(q, n), bad >= 0, "thread %d, round %d, %d requests", s->no, round, n);
  for (int i = 0; i < n; i++) {
    if (i == bad) continue;
    CHECK_EQ(q[i].result, q[i].nbytes, "thread %d, round %d, request %d", s->no, round, i);
    CHECK_DATA((i % 3 ? s->m : s->cpu) + i * 20000, q[i].nbytes, 50, (uint64_t)q[i].f_offset, "thread %d, round %d, request %d", s->no, round, i);
  }
}

/* Writes by several async batches, then reads by one, all in flight together. */
static void async_round(struct self *s, int round) {
  enum { W = 3 };
  phxfs_io_req_t w[W], r = {s->own, -1, s->cpu, 4 * T_PAGE, W * 10000, 0, -1};
  phxfs_batch_t *h[W + 1];
  uint32_t seed = (uint32_t)(s->no * 1000 + round);
  t_fill(s->m, W * 10000, seed, 0);
  for (int i = 0; i <= W; i++) {
    if (i < W) w[i] = (phxfs_io_req_t){s->own, s->device, s->m, i * 10000, 10000, i * 10000, -1};
    while (!(h[i] = i < W ? phxfs_batch_submit_write(&w[i], 1) : phxfs_batch_submit_read(&r, 1))) {
      if (errno != EBUSY) {
        t_fail(__FILE__, __LINE__, "thread %d, round %d, submit: %s", s->no, round, t_errno(errno));
        while (i--) phxfs_batch_destroy(h[i]);
        return;
      }
      sched_yield();
    }
  }
  CHECK_EQ(phxfs_batch_wait(h[W]), 0, "thread %d, round %d, read", s->no, round);
  CHECK_DATA(s->cpu + 4 * T_PAGE, W * 10000, seed, 0, "read behind the writes, thread %d, round %d", s->no, round);
  for (int i = 0; i < W; i++) {
    if (i == 1) CHECK_EQ(phxfs_batch_destroy(h[i]), 0, "thread %d, round %d", s->no, round);
    else CHECK_EQ(phxfs_batch_wait(h[i]), 0, "thread %d, round %d, write %d", s->no, round, i);
  }
}

static void single_round(struct self *s, int round) {
  for (int i = 0; i < 10; i++) {
    size_t len = next(&s->random) % 60000;
    off_t off = (off_t)(next(&s->random) % 900000);
    char *m = i % 2 ? s->cpu : s->m;
    CHECK_EQ(phxfs_read(shared, i % 2 ? -1 : s->device, m, i, (ssize_t)len, off), len, "thread %d, round %d", s->no, round);
    CHECK_DATA(m + i, len, 50, (uint64_t)off, "single, thread %d, round %d", s->no, round);
  }
}

/* Registrations and opens come and go under the others' feet, never under our own. */
static void control_round(struct self *s, int round) {
  void *target;
  int extra = (s->device + 1 + (int)(next(&s->random) % 7)) % 8;
  CHECK_EQ(phxfs_regmem(s->device, s->m, LEN, &target), 0, "second reference, thread %d, round %d", s->no, round);
  CHECK_EQ(phxfs_deregmem(s->device, s->m, LEN), 0, "second reference, thread %d, round %d", s->no, round);
  CHECK_EQ(phxfs_deregmem(s->device, s->m, LEN), 0, "last reference, thread %d, round %d", s->no, round);
  CHECK_EQ(phxfs_read(shared, s->device, s->m, 0, 16, 0), -1, "unregistered, thread %d, round %d", s->no, round);
  CHECK_EQ(phxfs_regmem(s->device, s->m, LEN, &target), 0, "again, thread %d, round %d", s->no, round);
  int r = phxfs_open(extra);
  CHECK(r == 0 || r == -EBUSY, "open(%d) gives %d, thread %d, round %d", extra, r, s->no, round);
  if (r == 0) CHECK_EQ(phxfs_close(extra), 0, "device %d, thread %d, round %d", extra, s->no, round);
  CHECK_EQ(phxfs_batch_wait((phxfs_batch_t *)((uintptr_t)0xdead << 48 | next(&s->random))), -EINVAL, "wild handle");
}

static void *work(void *arg) {
  struct self *s = arg;
  void *target;
  pthread_barrier_wait(&start);
  while (phxfs_open(s->device) == -EBUSY) sched_yield();
  CHECK_EQ(phxfs_regmem(s->device, s->m, LEN, &target), 0, "thread %d", s->no);
  for (int i = 0; i < ROUNDS && !t_failed(); i++) {
    switch ((i + s->no) % 4) {
    case 0: sync_round(s, i); break;
    case 1: async_round(s, i); break;
    case 2: single_round(s, i); break;
    case 3: control_round(s, i); break;
    }
  }
  CHECK_EQ(phxfs_deregmem(s->device, s->m, LEN), 0, "thread %d", s->no);
  CHECK_EQ(phxfs_close(s->device), 0, "thread %d", s->no);
  return NULL;
}

static void everything_at_once(void) {
  static struct self s[THREADS];
  pthread_t t[THREADS];
  t_leaks before;
  shared = t_file(1 << 20, 50);
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    s[i] = (struct self){.no = i, .device = i % 8, .own = t_file(0, 0), .m = t_map(LEN), .cpu = t_map(LEN), .random = (uint32_t)i * 77 + 1};
  for (int round = 0; round < 3 && !t_failed(); round++) {
    if (round == 1) t_leaks_take(&before);
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, work, &s[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < 8; i++) CHECK_ERR(phxfs_close(i), -1, ENODEV, "device %d, afterwards", i);
  }
  if (!t_failed()) CHECK_NO_LEAKS(&before, 16, 128, "64 threads that came and went");
}

/* Threads that make a few calls and go: nothing of them stays. */
static void *a_few_calls(void *arg) {
  char b[4096];
  phxfs_io_req_t q = {shared, -1, b, 0, 4096, (intptr_t)arg, 0};
  CHECK_EQ(phxfs_find_dev(3), 3, "thread %ld", (long)(intptr_t)arg);
  CHECK_EQ(phxfs_read_batch(&q, 1), 0, "thread %ld", (long)(intptr_t)arg);
  CHECK_EQ(phxfs_batch_wait(phxfs_batch_submit_read(&q, 0)), 0, "thread %ld", (long)(intptr_t)arg);
  CHECK_DATA(b, 4096, 50, (uint64_t)(intptr_t)arg, "thread %ld", (long)(intptr_t)arg);
  return NULL;
}
static void threads_come_and_go(void) {
  enum { AT_ONCE = 8, ALL = 4000 };
  pthread_t t[AT_ONCE];
  t_leaks before;
  long rss = 0;
  shared = t_file(1 << 20, 50);
  for (int i = 0; i < ALL; i += AT_ONCE) {
    if (i == ALL / 4) t_leaks_take(&before), rss = t_rss_kib();
    for (int k = 0; k < AT_ONCE; k++) pthread_create(&t[k], NULL, a_few_calls, (void *)(intptr_t)(i + k));
    for (int k = 0; k < AT_ONCE; k++) pthread_join(t[k], NULL);
  }
#ifdef __SANITIZE_ADDRESS__
  rss = LONG_MAX / 2; /* its allocator keeps what is freed */
#endif
  CHECK(t_rss_kib() - rss < 4096, "3000 threads left %ld KiB resident", t_rss_kib() - rss);
  CHECK_NO_LEAKS(&before, 8, 32, "3000 threads that came and went");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(threads_come_and_go), T_CASE(everything_at_once)};
  t_use_host();
  return T_RUN(argc, argv, cases, NULL);
}
