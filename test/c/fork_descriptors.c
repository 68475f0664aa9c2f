/* What a child inherits of the library's descriptors it closes, and nothing
 * else: over generations their number stays what one process needs. */
#include "fork_kit.h"

#include <dirent.h>
#include <fcntl.h>

/* Descriptors of rings: their number, and the highest, -1: none. */
static int rings(int *highest) {
  int n = 0;
  DIR *d = opendir("/proc/self/fd");
  *highest = -1;
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[300], target[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
    if (readlink(path, target, sizeof target - 1) < 0 || strcmp(target, "anon_inode:[io_uring]")) continue;
    n++;
    if (atoi(e->d_name) > *highest) *highest = atoi(e->d_name);
  }
  if (d) closedir(d);
  return n;
}

/* Batches too small to wake the helpers, which make rings when they like: these
 * are made in the calls, one for each of two threads (if they meet). */
static void *batches(void *who) {
  char b[512];
  phxfs_io_req_t q[2] = {{kit_fd, -1, b, 0, 256, 0, 0}, {kit_fd, -1, b + 256, 0, 256, 256, 0}};
  for (int i = 0; i < 200; i++) CHECK_OK(phxfs_read_batch(q, 2), 0, "%s", (char *)who);
  CHECK_DATA(b, sizeof b, 1, 0, "%s", (char *)who);
  return NULL;
}
static void use(const char *who) {
  pthread_t t;
  pthread_create(&t, NULL, batches, (void *)who);
  batches((void *)who);
  pthread_join(t, NULL);
}

enum { GENERATIONS = 5 };
static void generation(void *left) {
  int highest;
  long n = (long)left;
  if (n < GENERATIONS) CHECK_EQ(rings(&highest), 0, "rings right after a fork, generation %ld", GENERATIONS - n);
  use("a generation");
  if (n > 0) CHECK_EXIT(t_fork(generation, (void *)(n - 1)), 0, "generation");
  CHECK(rings(&highest) <= 2, "%d rings, generation %ld", rings(&highest), GENERATIONS - n);
}
static void rings_are_not_inherited(void) {
  NEED_RESET();
  generation((void *)(long)GENERATIONS);
}

static void child_that_never_calls(void *arg) {
  int highest;
  (void)arg;
  CHECK_EQ(rings(&highest), 0, "rings in a child that never calls");
}
static void a_child_that_never_calls_has_none(void) {
  NEED_RESET();
  use("parent");
  CHECK_EXIT(t_fork(child_that_never_calls, NULL), 0, "child");
}

/* A host that closes our number has it again for a file of its own. */
static int reused;
static void child_of_reuse(void *arg) {
  char b[100];
  (void)arg;
  CHECK_EQ(pread(reused, b, sizeof b, 0), sizeof b, "the host's file at a ring's number");
  kit_works("a child whose parent's ring is gone");
}
static void child_reuse(void) {
  kit_make();
  batches("parent");
  if (strcmp(phxfs_io_engine_name(), "io_uring")) T_SKIP("io_uring", "io_uring");
  NEED(rings(&reused) == 1, "%d rings", rings(&reused));
  NEED(dup3(kit_fd, reused, O_CLOEXEC) == reused, "%s", t_errno(errno));
  CHECK_EXIT(t_fork(child_of_reuse, NULL), 0, "child");
}
static void a_number_that_is_the_hosts_again_is_left_alone(void) {
  NEED_RESET();
  RUN_CHILD("reuse", NULL);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(rings_are_not_inherited), T_CASE(a_child_that_never_calls_has_none), T_CASE(a_number_that_is_the_hosts_again_is_left_alone),
  };
  static const t_case children[] = {{"reuse", child_reuse}, {0}};
  kit_make();
  return T_RUN(argc, argv, cases, children);
}
