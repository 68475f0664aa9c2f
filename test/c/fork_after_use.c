/* A child forked after the first use works like any process: whatever thread
 * calls first, whatever the parent is doing, also its own children. The parent,
 * its handles and its I/O do not notice. */
#include "fork_kit.h"
#include "t_barrier.h"

static char *reg; /* 64 KiB, registered in the parent */

static void parent_works(const char *when) {
  phxfs_io_req_t q[2] = {{kit_fd, 0, reg, 0, 4096, 9, 0}, {kit_fd, -1, kit_own, 0, 4096, 10, 0}};
  CHECK_OK(phxfs_read_batch(q, 2), 0, "%s", when);
  CHECK_DATA(reg, 4096, 1, 9, "%s", when);
  CHECK_OK(phxfs_read(kit_fd, 0, reg, 0, 4096, 77), 4096, "%s", when);
  CHECK_DATA(reg, 4096, 1, 77, "%s", when);
}

static void works(void *who) { kit_works(who); }
static void works_then_forks(void *who) {
  kit_works(who);
  CHECK_EXIT(t_fork(works, "a grandchild of a child that used it"), 0, "grandchild");
  kit_works(who);
}
static void only_forks(void *who) {
  (void)who;
  CHECK_EXIT(t_fork(works, "a grandchild of a child that never used it"), 0, "grandchild");
}
static void only_forks_then_works(void *who) {
  only_forks(who);
  kit_works("a child, after its own child");
}
static void descends(void *depth) {
  long d = (long)depth;
  kit_works("a line of descent");
  if (d > 0) CHECK_EXIT(t_fork(descends, (void *)(d - 1)), 0, "descent");
}

static void a_child_works(void) {
  NEED_RESET();
  for (int i = 0; i < 5; i++) CHECK_EXIT(t_fork(works, "a child"), 0, "a child");
  parent_works("afterwards");
}
static void children_at_the_same_time_work(void) {
  pid_t p[6];
  NEED_RESET();
  for (int i = 0; i < 6; i++) p[i] = t_fork(works, "one of six children");
  for (int i = 0; i < 6; i++) CHECK_EXIT(p[i], 0, "one of six");
}
static void children_of_children_work(void) {
  NEED_RESET();
  CHECK_EXIT(t_fork(works_then_forks, "a child with a child"), 0, "child");
  CHECK_EXIT(t_fork(only_forks, NULL), 0, "child that never calls");
  CHECK_EXIT(t_fork(only_forks_then_works, NULL), 0, "child that calls later");
  CHECK_EXIT(t_fork(descends, (void *)5L), 0, "six generations");
  parent_works("afterwards");
}

static pthread_barrier_t start;
static void *works_in_thread(void *i) {
  char got[512];
  phxfs_io_req_t q = {kit_fd, -1, got, 0, 512, (long)i * 512, 0};
  pthread_barrier_wait(&start);
  CHECK_EQ(phxfs_read_batch(&q, 1), 0, "racing first call, thread %ld", (long)i);
  CHECK_DATA(got, 512, 1, (uint64_t)q.f_offset, "thread %ld", (long)i);
  return NULL;
}
static void races(void *threads) {
  long n = (long)threads;
  pthread_t t[16];
  pthread_barrier_init(&start, NULL, (unsigned)n);
  for (long i = 0; i < n; i++) pthread_create(&t[i], NULL, works_in_thread, (void *)i);
  for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
  kit_works("a child, after the race of its threads");
}
static void new_threads_may_call_first(void) {
  NEED_RESET();
  CHECK_EXIT(t_fork(races, (void *)1L), 0, "one new thread");
  for (int i = 0; i < 5; i++) CHECK_EXIT(t_fork(races, (void *)2L), 0, "two at once");
  for (int i = 0; i < 5; i++) CHECK_EXIT(t_fork(races, (void *)16L), 0, "sixteen at once");
}

static void *forks(void *uses) {
  if (uses) CHECK_EQ(phxfs_find_dev(1), 1, "a thread that Go knows");
  for (int i = 0; i < 3; i++) {
    CHECK_EXIT(t_fork(works_then_forks, "a child of a thread"), 0, "child");
    CHECK_EXIT(t_fork(races, (void *)2L), 0, "child of a thread, with threads");
  }
  return NULL;
}
static void threads_may_fork(void) {
  if (getenv("T_FORK_THERE")) T_SKIP(NULL, "qemu-user aborts when not the newest thread forks (t_child.c)");
  NEED_RESET();
  for (long uses = 0; uses < 2; uses++) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, forks, (void *)uses);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
  }
}

/* Forks while other threads are inside calls of every kind. */
static atomic_bool over;
static void *hammer(void *arg) {
  char *to = arg;
  while (!over && !t_failed()) {
    void *target;
    phxfs_io_req_t q[8];
    for (int i = 0; i < 8; i++) q[i] = (phxfs_io_req_t){kit_fd, -1, to, i * 4096, 4096, i * 4096, 0};
    CHECK_EQ(phxfs_read_batch(q, 8), 0, "the parent's batch during forks");
    CHECK_EQ(phxfs_batch_wait(phxfs_batch_submit_read(q, 8)), 0, "the parent's async batch during forks");
    CHECK_EQ(phxfs_regmem(0, to, T_PAGE, &target), 0, "the parent's regmem during forks");
    CHECK_EQ(phxfs_deregmem(0, to, T_PAGE), 0, "the parent's dereg during forks");
  }
  return NULL;
}
static void forks_while_threads_are_inside(void) {
  pthread_t t[4];
  char *to[4];
  NEED_RESET();
  over = false;
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, hammer, to[i] = t_map(T_PAGE));
  for (int i = 0; i < 30 && !t_failed(); i++) {
    pid_t p[2] = {t_fork(works, "a child of a busy parent"), t_fork(only_forks, NULL)};
    CHECK_EXIT(p[0], 0, "busy parent");
    CHECK_EXIT(p[1], 0, "busy parent");
  }
  over = true;
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL), t_unmap(to[i], T_PAGE);
  parent_works("afterwards");
}

/* With a batch of the parent standing still and 15 queued behind it: the
 * child's own queue is empty, and its exit() waits for, flushes and releases
 * nothing of its parent's. */
static void ends(void *uses) {
  char got[16];
  if (!uses) return;
  for (int i = 0; i < 16; i++) {
    phxfs_io_req_t q = {kit_fd, -1, got, 0, 16, 0, 0};
    CHECK_OK(phxfs_batch_wait(phxfs_batch_submit_read(&q, 1)), 0, "a child of a parent with a full queue");
  }
}
static void exit_of_the_child_is_quick_and_clean(void) {
  enum { N = 16 };
  t_barrier b;
  char *stuck = t_map(N * T_PAGE);
  phxfs_io_req_t q[N];
  phxfs_batch_t *h[N];
  NEED_RESET();
  NEED_BARRIER(&b, stuck, 4096);
  for (int i = 0; i < N; i++) {
    q[i] = (phxfs_io_req_t){kit_fd, -1, stuck + (size_t)i * T_PAGE, 0, 4096, 0, 111};
    h[i] = phxfs_batch_submit_read(&q[i], 1);
    CHECK(h[i], "submit %d: %s", i, t_errno(errno));
  }
  CHECK(t_barrier_reached(&b), "the parent's I/O stands");
  double begun = t_now();
  for (int i = 0; i < 3; i++) CHECK_EXIT(t_fork(ends, NULL), 0, "a child that only exits");
  CHECK_EXIT(t_fork(ends, "uses"), 0, "a child that uses it and exits");
  CHECK_EXIT(t_fork(works_then_forks, "a child with the parent's I/O in flight"), 0, "a child");
  CHECK(t_now() - begun < T_WAIT_SECONDS, "exit of a child has waited for the parent's I/O (%.0f s)", t_now() - begun);
  for (int i = 0; i < N; i++) CHECK_EQ(q[i].result, 111, "request %d stands or is queued", i);
  t_barrier_release(&b);
  for (int i = 0; i < N; i++) {
    CHECK_OK(phxfs_batch_wait(h[i]), 0, "the parent's batch %d", i);
    CHECK_DATA(stuck + (size_t)i * T_PAGE, 4096, 1, 0, "the parent's batch %d", i);
  }
  parent_works("afterwards");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(a_child_works), T_CASE(children_at_the_same_time_work), T_CASE(children_of_children_work),
    T_CASE(new_threads_may_call_first), T_CASE(threads_may_fork), T_CASE(forks_while_threads_are_inside),
    T_CASE(exit_of_the_child_is_quick_and_clean),
  };
  void *target;
  kit_make();
  reg = t_map(T_PAGE);
  if (phxfs_open(0) || phxfs_regmem(0, reg, T_PAGE, &target)) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
