/* A child forked after the first use: calls that need the runtime say ENOSYS at
 * once, single transfers on CPU buffers work, exit is clean; the parent, its
 * handles and its I/O do not notice. */
#include "t.h"
#include "t_barrier.h"

#include <sys/syscall.h>

static char *m, *reg; /* 64 KiB each; reg is registered in the parent */
static int fd;        /* 64 KiB of pattern 1 */
static phxfs_batch_t *parents;

static void refused(const char *who) {
  void *target = (void *)0x5a;
  phxfs_io_req_t q = {fd, -1, m, 0, 16, 0, 111};
  for (int i = 0; i < 3; i++) {
    CHECK_ERR(phxfs_open(1), -ENOSYS, ENOSYS, "%s", who);
    CHECK_ERR(phxfs_open(0), -ENOSYS, ENOSYS, "%s, open in the parent", who);
    CHECK_ERR(phxfs_find_dev(0), -ENOSYS, ENOSYS, "%s", who);
    CHECK_ERR(phxfs_regmem(0, m, T_PAGE, &target), -ENOSYS, ENOSYS, "%s", who);
    CHECK_ERR(phxfs_deregmem(0, reg, T_PAGE), -ENOSYS, ENOSYS, "%s", who);
    CHECK_ERR(phxfs_read(fd, 0, reg, 0, 16, 0), -ENOSYS, ENOSYS, "%s, device", who);
    CHECK_ERR(phxfs_write(fd, 0, reg, 0, 16, 0), -ENOSYS, ENOSYS, "%s, device", who);
    CHECK_ERR(phxfs_read_batch(&q, 1), -ENOSYS, ENOSYS, "%s", who);
    CHECK_ERR(phxfs_write_batch(&q, 1), -ENOSYS, ENOSYS, "%s", who);
    CHECK_NULL(phxfs_batch_submit_read(&q, 1), ENOSYS, "%s", who);
    CHECK_NULL(phxfs_batch_submit_write(&q, 1), ENOSYS, "%s", who);
    CHECK_ERR(phxfs_batch_wait(parents), -ENOSYS, ENOSYS, "%s, the parent's handle", who);
    CHECK_ERR(phxfs_batch_destroy(parents), -ENOSYS, ENOSYS, "%s, the parent's handle", who);
    CHECK_NULL(phxfs_io_engine_name(), ENOSYS, "%s", who);
    CHECK_ERR(phxfs_close(0), -ENOSYS, ENOSYS, "%s", who);
  }
  CHECK_EQ((intptr_t)target, 0x5a, "*target_addr");
  CHECK_EQ(q.result, 111, "no result is written");
}

static void cpu_buffers(const char *who) {
  char b[4096];
  int out = t_file(0, 0);
  CHECK_OK(phxfs_read(fd, -1, b, 0, 4096, 55), 4096, "%s", who);
  CHECK_DATA(b, 4096, 1, 55, "%s", who);
  CHECK_OK(phxfs_write(out, -1, b, 0, 4096, 0), 4096, "%s", who);
  CHECK_OK(phxfs_read(fd, -1, b, 0, 4096, 65000), 536, "%s, short", who);
  CHECK_ERR(phxfs_read(-1, -1, b, 0, 16, 0), -EBADF, EBADF, "%s", who);
  CHECK_ERR(phxfs_read(fd, -1, b, 0, -1, 0), -EINVAL, EINVAL, "%s", who);
  close(out);
}

static void child(void *who) {
  int tasks = t_tasks();
  refused(who), cpu_buffers(who);
  CHECK_EQ(t_tasks(), tasks, "%s has started no thread", (char *)who);
}
static void child_with_a_child(void *who) {
  child(who);
  CHECK_EXIT(t_fork(child, "a grandchild"), 0, "grandchild");
}
static void child_exits_at_once(void *arg) { (void)arg; }

static void *refused_in_thread(void *who) {
  refused(who), cpu_buffers(who);
  return NULL;
}
static void child_with_threads(void *who) {
  pthread_t t[8];
  (void)who;
  for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, refused_in_thread, "a thread of a child");
  for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
}
/* The runtimes of a _Fork or a raw clone: no atfork handler has run. */
static void child_without_atfork(void) {
  pid_t pid = _Fork();
  if (pid == 0) {
    alarm(T_CHILD_SECONDS);
    refused("a child of _Fork"), cpu_buffers("a child of _Fork");
    _exit(0);
  }
  CHECK_EXIT(pid, 0, "_Fork");
}

static void parent_works(const char *when) {
  phxfs_io_req_t q[2] = {{fd, 0, reg, 0, 4096, 9, 0}, {fd, -1, m, 0, 4096, 10, 0}};
  CHECK_OK(phxfs_read_batch(q, 2), 0, "%s", when);
  CHECK_DATA(reg, 4096, 1, 9, "%s", when);
  CHECK_OK(phxfs_read(fd, 0, reg, 0, 4096, 77), 4096, "%s", when);
  CHECK_DATA(reg, 4096, 1, 77, "%s", when);
}

static void the_child_is_refused_at_once(void) {
  phxfs_io_req_t q = {fd, 0, reg, 8192, 4096, 0, 111};
  parents = phxfs_batch_submit_read(&q, 1);
  CHECK(parents != NULL, "submit: %s", t_errno(errno));
  for (int i = 0; i < 5; i++) CHECK_EXIT(t_fork(child, "a child"), 0, "a child");
  parent_works("between");
  CHECK_EXIT(t_fork(child_with_a_child, "a child with a child"), 0, "a child with a child");
  CHECK_EXIT(t_fork(child_with_threads, NULL), 0, "a child with threads");
  child_without_atfork();
  CHECK_OK(phxfs_batch_wait(parents), 0, "the parent's handle, in the parent");
  CHECK_EQ(q.result, 4096, "the parent's handle, in the parent");
  parent_works("afterwards");
}

/* exit() in the child must not wait for, flush or release what is the parent's:
 * here a batch that stands still for as long as the child lives. */
static void exit_of_the_child_is_quick_and_clean(void) {
  t_barrier b;
  char *stuck = t_map(T_PAGE);
  phxfs_io_req_t q = {fd, -1, stuck, 0, 4096, 0, 111};
  NEED_BARRIER(&b, stuck, 4096);
  phxfs_batch_t *h = phxfs_batch_submit_read(&q, 1);
  CHECK(h && t_barrier_reached(&b), "the parent's I/O stands");
  double begun = t_now();
  for (int i = 0; i < 3; i++) CHECK_EXIT(t_fork(child_exits_at_once, NULL), 0, "a child that only exits");
  CHECK_EXIT(t_fork(child, "a child with the parent's I/O in flight"), 0, "a child");
  CHECK(t_now() - begun < T_WAIT_SECONDS, "exit of a child has waited for the parent's I/O (%.0f s)", t_now() - begun);
  CHECK_EQ(q.result, 111, "the barrier holds");
  t_barrier_release(&b);
  CHECK_OK(phxfs_batch_wait(h), 0, "the parent's batch");
  CHECK_DATA(stuck, 4096, 1, 0, "the parent's batch");
  parent_works("afterwards");
}

/* Forks while other threads are inside calls of every kind. */
static atomic_bool over;
static void *hammer(void *arg) {
  char *to = arg;
  while (!over && !t_failed()) {
    void *target;
    phxfs_io_req_t q[8];
    for (int i = 0; i < 8; i++) q[i] = (phxfs_io_req_t){fd, -1, to, i * 4096, 4096, i * 4096, 0};
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
  over = false;
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, hammer, to[i] = t_map(T_PAGE));
  for (int i = 0; i < 100 && !t_failed(); i++) {
    pid_t p[2] = {t_fork(child, "a child forked from a busy parent"), t_fork(child, "a child forked from a busy parent")};
    CHECK_EXIT(p[0], 0, "busy parent");
    CHECK_EXIT(p[1], 0, "busy parent");
  }
  over = true;
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL), t_unmap(to[i], T_PAGE);
  parent_works("afterwards");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(the_child_is_refused_at_once), T_CASE(exit_of_the_child_is_quick_and_clean),
                                 T_CASE(forks_while_threads_are_inside)};
  void *target;
  t_use_host();
  m = t_map(T_PAGE), reg = t_map(T_PAGE), fd = t_file(T_PAGE, 1);
  if (phxfs_open(0) || phxfs_regmem(0, reg, T_PAGE, &target)) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
