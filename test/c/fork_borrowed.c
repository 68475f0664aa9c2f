/* What a child may do with its parent's devices, registrations and handles:
 * use them and drop them, without the parent noticing; make its own. */
#include "fork_kit.h"

static char *reg; /* 2 * 64 KiB, registered twice in the parent on device 0, opened twice */
static const size_t LEN = 2 * T_PAGE;

static void reads(int want, const char *who) {
  phxfs_io_req_t q = {kit_fd, 0, reg + 4096, 100, 4096, 7, 0};
  memset(t_host(reg), 0, LEN);
  CHECK_EQ(phxfs_read(kit_fd, 0, reg, 32768, 4096, 3), want ? 4096 : -1, "%s, single", who);
  CHECK_EQ(phxfs_read_batch(&q, 1), want ? 0 : 1, "%s, batch", who);
  CHECK_EQ(q.result, want ? 4096 : -EFAULT, "%s, batch", who);
  if (!want) return;
  CHECK_DATA(reg + 32768, 4096, 1, 3, "%s, single", who);
  CHECK_DATA(reg + 4096 + 100, 4096, 1, 7, "%s, batch", who);
  phxfs_batch_t *h = phxfs_batch_submit_read(&q, 1);
  CHECK_OK(phxfs_batch_wait(h), 0, "%s, async", who);
  int out = t_file(0, 0);
  CHECK_OK(phxfs_write(out, 0, reg, 8192, 4096, 0), 4096, "%s, write", who);
  close(out);
}

static void child_reads(void *who) {
  reads(1, who);
  CHECK_ERR(phxfs_read(kit_fd, 0, reg, (off_t)LEN - 10, 100, 0), -1, EFAULT, "%s, beyond the end", (char *)who);
  CHECK_ERR(phxfs_read(kit_fd, 5, reg, 0, 100, 0), -1, ENODEV, "%s, device that the parent has not opened", (char *)who);
}

static void child_drops(void *arg) {
  void *target;
  (void)arg;
  CHECK_ERR(phxfs_deregmem(0, reg, T_PAGE), -1, ENOENT, "another length");
  CHECK_OK(phxfs_deregmem(0, reg, LEN), 0, "first of two references");
  reads(1, "one reference is left");
  CHECK_EXIT(t_fork(child_reads, "a grandchild"), 0, "a grandchild");
  CHECK_OK(phxfs_deregmem(0, reg, LEN), 0, "second");
  CHECK_ERR(phxfs_deregmem(0, reg, LEN), -1, ENOENT, "third");
  reads(0, "deregistered");
  CHECK_OK(phxfs_regmem(0, reg, T_PAGE, &target), 0, "its own, of other length");
  CHECK_OK(phxfs_read(kit_fd, 0, reg, 0, 100, 0), 100, "its own");
  CHECK_OK(phxfs_regmem(0, kit_own, T_PAGE, &target), 0, "another of its own");
  CHECK_OK(phxfs_close(0), 0, "one of two opens");
  CHECK_OK(phxfs_read(kit_fd, 0, reg, 0, 100, 0), 100, "one open is left");
  CHECK_OK(phxfs_close(0), 0, "two of two");
  CHECK_ERR(phxfs_close(0), -1, ENODEV, "three of two");
  CHECK_ERR(phxfs_read(kit_fd, 0, reg, 0, 100, 0), -1, ENODEV, "closed");
  CHECK_OK(phxfs_open(0), 0, "again");
  CHECK_OK(phxfs_regmem(0, reg, LEN, &target), 0, "again");
  reads(1, "again");
}

static void child_closes(void *arg) { /* with the registration there */
  (void)arg;
  CHECK_OK(phxfs_open(0), 0, "one more");
  for (int i = 0; i < 3; i++) CHECK_OK(phxfs_close(0), 0, "%d of 3", i);
  CHECK_ERR(phxfs_close(0), -1, ENODEV, "the parent's and its own");
  reads(0, "closed");
}

static void child_duplicates(void *arg) {
  void *target;
  (void)arg;
  CHECK_OK(phxfs_regmem(0, reg, LEN, &target), 0, "a third reference");
  CHECK(target == t_host(reg), "target");
  CHECK_ERR(phxfs_regmem(0, reg + T_PAGE, T_PAGE, &target), -EINVAL, EINVAL, "overlap with a borrowed one");
  for (int i = 0; i < 3; i++) CHECK_OK(phxfs_deregmem(0, reg, LEN), 0, "%d of 3", i);
  reads(0, "all three gone");
}

static void parent_reads(const char *when) { reads(1, when); }

static void a_child_reads_into_borrowed_registrations(void) {
  NEED_RESET();
  for (int i = 0; i < 3; i++) CHECK_EXIT(t_fork(child_reads, "a child"), 0, "a child");
  parent_reads("afterwards");
}
static void a_child_drops_without_the_parent_noticing(void) {
  NEED_RESET();
  CHECK_EXIT(t_fork(child_drops, NULL), 0, "deregmem and close");
  parent_reads("after the child's deregmem and close");
  CHECK_EXIT(t_fork(child_closes, NULL), 0, "close");
  parent_reads("after the child's close");
  CHECK_EXIT(t_fork(child_duplicates, NULL), 0, "regmem of the same");
  parent_reads("after the child's duplicate");
}

static void *child_reads_in_thread(void *who) {
  for (int i = 0; i < 20; i++) CHECK_EQ(phxfs_read(kit_fd, 0, reg, 0, 100, 0), 100, "%s", (char *)who);
  return NULL;
}
static void child_of_a_taker(void *arg) {
  pthread_t t[4];
  (void)arg;
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, child_reads_in_thread, "threads of a child");
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
}
/* The pin is busy in the parent when it forks: the child sees no users. */
static atomic_bool over;
static void *parent_busy(void *arg) {
  (void)arg;
  while (!over) CHECK_EQ(phxfs_read(kit_fd, 0, reg, 8192, 40000, 0), 40000, "the parent's own reads");
  return NULL;
}
static void child_deregisters(void *arg) {
  (void)arg;
  CHECK_OK(phxfs_deregmem(0, reg, LEN), 0, "1 of 2");
  CHECK_OK(phxfs_deregmem(0, reg, LEN), 0, "2 of 2, waits for nobody");
}
static void the_parents_users_are_not_the_childs(void) {
  pthread_t t[3];
  NEED_RESET();
  over = false;
  for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, parent_busy, NULL);
  for (int i = 0; i < 15 && !t_failed(); i++) {
    CHECK_EXIT(t_fork(child_deregisters, NULL), 0, "deregmem of a registration that is busy in the parent");
    if (i % 10 == 0) CHECK_EXIT(t_fork(child_of_a_taker, NULL), 0, "threads");
  }
  over = true;
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
}

/* Every process makes the same numbers, but for the upper 8 bits, in which forks
 * are counted: only these tell a handle of the parent's from one of its own. */
static uintptr_t without_forks(phxfs_batch_t *h) { return (uintptr_t)h & (((uintptr_t)1 << 56) - 1); }
static phxfs_batch_t *parents[2]; /* the first one not waited for, the second one waited for */
static void parents_are_refused(const char *when) {
  for (int i = 0; i < 2; i++) {
    CHECK_ERR(phxfs_batch_wait(parents[i]), -EINVAL, EINVAL, "the parent's handle %d, %s", i, when);
    CHECK_ERR(phxfs_batch_destroy(parents[i]), -EINVAL, EINVAL, "the parent's handle %d, %s", i, when);
  }
}
static void own_handles(void *children) { /* in a process that has made none yet */
  enum { N = 20 };
  phxfs_io_req_t q[N];
  phxfs_batch_t *mine[N];
  char got[N][16];
  parents_are_refused("with none of its own");
  for (int i = 0; i < N; i++) {
    q[i] = (phxfs_io_req_t){kit_fd, -1, got[i], 0, 16, i, 111};
    while (!(mine[i] = phxfs_batch_submit_read(&q[i], 1)) && errno == EBUSY) sched_yield();
    CHECK(mine[i] && mine[i] != parents[0] && mine[i] != parents[1], "own handle %d", i);
    parents_are_refused("with own ones live");
  }
  for (int i = 0; i < 2 && parents[0]; i++)
    CHECK(without_forks(mine[i]) == without_forks(parents[i]), "handle %d: the number of the parent's, or nothing was tried", i);
  for (int i = 0; i < N; i++) CHECK_EQ(q[i].result, 111, "own handle %d is not waited for", i);
  for (int i = 1; i < N; i++) CHECK_OK(phxfs_batch_wait(mine[i]), 0, "own handle %d", i);
  parents[0] = mine[0], parents[1] = mine[1];
  for (intptr_t left = (intptr_t)children; left > 0; left--)
    CHECK_EXIT(t_fork(own_handles, (void *)(left - 1)), 0, "a child");
  CHECK_OK(phxfs_batch_wait(mine[0]), 0, "own handle 0");
  for (int i = 0; i < N; i++) {
    CHECK_EQ(q[i].result, 16, "own handle %d", i);
    CHECK_DATA(got[i], 16, 1, (size_t)i, "own handle %d", i);
  }
}
static void first_process(void) { own_handles((void *)2); } /* two children and a grandchild */
static void the_parents_handles_are_einval(void) {
  NEED_RESET();
  RUN_CHILD("first_process", NULL);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(a_child_reads_into_borrowed_registrations), T_CASE(a_child_drops_without_the_parent_noticing),
    T_CASE(the_parents_users_are_not_the_childs), T_CASE(the_parents_handles_are_einval),
  };
  static const t_case children[] = {T_CASE(first_process), {0}};
  void *target;
  kit_make();
  reg = t_map(LEN);
  for (int i = 0; i < 2; i++)
    if (phxfs_open(0) || phxfs_regmem(0, reg, LEN, &target)) return 1;
  return T_RUN(argc, argv, cases, children);
}
