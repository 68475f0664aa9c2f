/* A child forked before the parent's first call is as good as any process: also
 * with threads that race its first call, also its own children; and the parent
 * is none the wiser. */
#include "t.h"

static char *m; /* 64 KiB, made before the fork */
static int fd;  /* 64 KiB of pattern 1 */

static void use_everything(const char *who) {
  void *target;
  char got[4096];
  CHECK_OK(phxfs_open(2), 0, "%s", who);
  CHECK_OK(phxfs_regmem(2, m, T_PAGE, &target), 0, "%s", who);
  CHECK_OK(phxfs_read(fd, 2, m, 0, 4096, 100), 4096, "%s", who);
  CHECK_DATA(m, 4096, 1, 100, "%s", who);
  phxfs_io_req_t q[3] = {{fd, 2, m, 8192, 4096, 0, 0}, {fd, -1, got, 0, 4096, 777, 0}, {-1, -1, got, 0, 1, 0, 0}};
  CHECK_OK(phxfs_read_batch(q, 2), 0, "%s", who);
  CHECK_DATA(got, 4096, 1, 777, "%s", who);
  phxfs_batch_t *h = phxfs_batch_submit_read(q, 3);
  CHECK_OK(phxfs_batch_wait(h), 1, "%s", who);
  CHECK_DATA(m + 8192, 4096, 1, 0, "%s", who);
  CHECK_OK(phxfs_io_engine_name() != NULL, 1, "%s", who);
  CHECK_OK(phxfs_deregmem(2, m, T_PAGE), 0, "%s", who);
  CHECK_OK(phxfs_close(2), 0, "%s", who);
}

static void child_uses(void *who) { use_everything(who); }

static void child_and_grandchild(void *arg) {
  (void)arg;
  CHECK_EXIT(t_fork(child_uses, "a grandchild, forked before its parent's first call"), 0, "grandchild");
  use_everything("the child, after its own child");
}

static pthread_barrier_t start;
static void *first_call(void *arg) {
  long i = (long)arg;
  char got[512];
  phxfs_io_req_t q = {fd, -1, got, 0, 512, i * 512, 0};
  pthread_barrier_wait(&start);
  switch (i % 4) {
  case 0: CHECK_EQ(phxfs_find_dev(3), 3, "racing first call %ld", i); break;
  case 1: CHECK_EQ(phxfs_open(5), 0, "racing first call %ld", i); break;
  case 2: CHECK(phxfs_io_engine_name() != NULL, "racing first call %ld", i); break;
  case 3: CHECK_EQ(phxfs_read(fd, -1, got, 0, 512, 0), 512, "racing first call %ld", i); break;
  }
  CHECK_EQ(phxfs_read_batch(&q, 1), 0, "thread %ld", i);
  CHECK_DATA(got, 512, 1, (uint64_t)(i * 512), "thread %ld", i);
  return NULL;
}
static void child_races(void *arg) {
  pthread_t t[16];
  (void)arg;
  pthread_barrier_init(&start, NULL, 16);
  for (long i = 0; i < 16; i++) pthread_create(&t[i], NULL, first_call, (void *)i);
  for (int i = 0; i < 16; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < 4; i++) CHECK_OK(phxfs_close(5), 0, "count %d", i);
  CHECK_ERR(phxfs_close(5), -1, ENODEV, "four opens");
  use_everything("after the race");
}

/* The cases below run in this order; none but the last uses the library in
 * this process, so every fork is one before the first use. */
static void a_child_works(void) {
  for (int i = 0; i < 20; i++) CHECK_EXIT(t_fork(child_uses, "a child"), 0, "a child");
}
static void children_at_the_same_time_work(void) {
  pid_t p[8];
  for (int i = 0; i < 8; i++) p[i] = t_fork(child_uses, "one of eight children");
  for (int i = 0; i < 8; i++) CHECK_EXIT(p[i], 0, "one of eight");
}
static void a_grandchild_works(void) { CHECK_EXIT(t_fork(child_and_grandchild, NULL), 0, "child"); }
static void sixteen_threads_race_the_first_call(void) {
  for (int i = 0; i < 10; i++) CHECK_EXIT(t_fork(child_races, NULL), 0, "16 threads");
}

static void child_cpu_then_fork(void *arg) {
  char b[512];
  (void)arg;
  /* Plain C is no first use: a child behind it starts the runtime all the same. */
  CHECK_OK(phxfs_read(fd, -1, b, 0, 512, 0), 512, "CPU buffer");
  CHECK_EXIT(t_fork(child_uses, "a child forked after a CPU-buffer read"), 0, "grandchild");
  use_everything("the child, after its own child");
}
static void a_cpu_buffer_read_is_no_first_use(void) { CHECK_EXIT(t_fork(child_cpu_then_fork, NULL), 0, "child"); }

static void no_thread_has_started_in_the_parent(void) { CHECK_EQ(t_tasks(), 1, "threads of a process that only forked"); }
static void the_parent_works_afterwards(void) { use_everything("the parent"); }

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(a_child_works), T_CASE(children_at_the_same_time_work), T_CASE(a_grandchild_works),
    T_CASE(sixteen_threads_race_the_first_call), T_CASE(a_cpu_buffer_read_is_no_first_use),
    T_CASE(no_thread_has_started_in_the_parent), T_CASE(the_parent_works_afterwards),
  };
  t_use_host();
  m = t_map(T_PAGE), fd = t_file(T_PAGE, 1);
  return T_RUN(argc, argv, cases, NULL);
}
