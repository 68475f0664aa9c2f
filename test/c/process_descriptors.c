/* Descriptors: a process that closed 0 to 2, and one that has no more to give. */
#include "t_load.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct t_api lib;
static int fd, log_fd; /* 64 KiB of pattern 1; the log */
static char log_path[PATH_MAX + 32];

static void prepare(void) {
  char dir[] = "t_dev_XXXXXX", path[PATH_MAX + 32];
  static char full[PATH_MAX];
  if (!mkdtemp(dir) || !realpath(dir, full)) abort();
  for (int i = 0; i < 2 && !t_emulated(); i++) { /* open is all that a node must do here */
    snprintf(path, sizeof path, "%s/phxfs_dev%d", full, i);
    close(open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  }
  snprintf(log_path, sizeof log_path, "%s/log", full);
  log_fd = open(log_path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (!t_emulated()) setenv("PHXFS_DEV_DIR", full, 1);
  setenv("PHXFS_VENDOR", "NVIDIA", 1);
  setenv("PHXFS_LOG", "error", 1);
  if (!getenv("TO_STDERR")) setenv("PHXFS_LOG_FILE", log_path, 1);
  fd = t_file(T_PAGE, 1);
}

static void batches(const char *when) {
  char b[16 * 4096];
  phxfs_io_req_t q[16];
  for (int i = 0; i < 16; i++) q[i] = (phxfs_io_req_t){fd, -1, b, i * 4096, 4096, i * 4096, 0};
  struct rlimit before, after;
  getrlimit(RLIMIT_NOFILE, &before);
  CHECK_OK(lib.read_batch(q, 16), 0, "%s", when);
  getrlimit(RLIMIT_NOFILE, &after);
  CHECK(before.rlim_cur == after.rlim_cur && before.rlim_max == after.rlim_max, "RLIMIT_NOFILE %llu, was %llu, %s",
        (unsigned long long)after.rlim_cur, (unsigned long long)before.rlim_cur, when);
  CHECK_DATA(b, sizeof b, 1, 0, "%s", when);
  memset(b, 0, sizeof b);
  CHECK_OK(lib.wait(lib.submit_read(q, 16)), 0, "%s", when);
  CHECK_DATA(b, sizeof b, 1, 0, "%s", when);
  CHECK_OK(lib.read(fd, -1, b, 0, 4096, 0), 4096, "%s", when);
  CHECK_ERR(lib.read(-1, -1, b, 0, 4096, 0), -EBADF, EBADF, "a line for the log, %s", when);
}

/* A file registers nothing; an emulated device does. */
static void device_memory(const char *when) {
  char *m = t_map(T_PAGE);
  void *target;
  if (!t_emulated()) return;
  CHECK_OK(lib.regmem(0, m, T_PAGE, &target), 0, "%s", when);
  CHECK_OK(lib.read(fd, 0, m, 0, (ssize_t)T_PAGE, 0), (ssize_t)T_PAGE, "%s", when);
  CHECK_DATA(target, T_PAGE, 1, 0, "%s", when);
  CHECK_OK(lib.deregmem(0, m, T_PAGE), 0, "%s", when);
}

/* A helper's ring is made at the lowest number and moved at once, which a thread
 * that gets no processor can take its time to do. */
static void standard_closed(const char *when) {
  char path[32], what[64] = "";
  for (int i = 0; i < 3; i++) {
    if (T_EVENTUALLY(fcntl(i, F_GETFD) == -1 && errno == EBADF)) continue;
    snprintf(path, sizeof path, "/proc/self/fd/%d", i);
    if (readlink(path, what, sizeof what - 1) < 0) strcpy(what, "gone");
    CHECK(false, "descriptor %d stays open, %s: %s", i, when, what);
  }
}

static void child_closed(void) {
  prepare();
  for (int i = 0; i < 3; i++) close(i);
  if (!t_load(&lib)) return;
  batches("0 to 2 closed");
  CHECK(lib.engine_name() != NULL, "engine");
  standard_closed("after batches");
  CHECK_OK(lib.open(0), 0, "a node");
  standard_closed("after open");
  batches("0 to 2 closed, device open");
  device_memory("0 to 2 closed");
  standard_closed("after a registration");
  CHECK_OK(lib.close(0), 0, "a node");
  standard_closed("after close");
}

/* Descriptors in use but for those of the library's threads, which hold one for a
 * moment while they start. */
static int used(void) {
  t_leaks l;
  t_leaks_take(&l);
  CHECK(l.pool <= T_POOL_FDS, "%d descriptors of rings and pollers", l.pool);
  return l.fds;
}

/* A node cannot be opened for want of a descriptor, once every free one is taken.
 * What a thread of the library gives back meanwhile is taken, too. */
static int taken;
static bool open_fails(void) {
  while (fcntl(fd, F_DUPFD_CLOEXEC, 0) >= 0) taken++;
  int r = lib.open(0), err = errno;
  if (r == 0) lib.close(0);
  errno = err;
  return r == -1;
}

static void child_none_left(void) {
  struct rlimit old, few;
  bool early = getenv("EARLY") != NULL;
  prepare();
  getrlimit(RLIMIT_NOFILE, &old);
  if (!t_load(&lib)) return;
  if (!early) batches("before the limit");
  int count = used();
  few = (struct rlimit){64, old.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  for (int i = 0; i < 3; i++) {
    CHECK(T_EVENTUALLY(open_fails()), "a node opens without a descriptor, try %d", i);
    CHECK(errno == EMFILE, "try %d: %s", i, t_errno(errno));
    batches("no descriptor left");
    CHECK(lib.engine_name() != NULL, "engine");
  }
  setrlimit(RLIMIT_NOFILE, &old);
  CHECK_EQ(used(), count + taken, "descriptors lost");
  CHECK_OK(lib.open(0), 0, "there is room again");
  device_memory("there is room again");
  CHECK_EQ(used(), count + taken + 1, "descriptors: the node's");
  CHECK_OK(lib.close(0), 0, "there is room again");
  CHECK_EQ(used(), count + taken, "descriptors after close");
}

/* The check of host memory needs a descriptor: the memory is not to blame. */
static void child_none_for_the_check(void) {
  struct rlimit old, none;
  char *m = t_map(T_PAGE);
  void *target = (void *)0x5a;
  t_use_host();
  if (!t_load(&lib)) return;
  CHECK_OK(lib.open(0), 0, "host");
  getrlimit(RLIMIT_NOFILE, &old);
  none = (struct rlimit){3, old.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  int r = lib.regmem(0, m, T_PAGE, &target), err = errno;
  setrlimit(RLIMIT_NOFILE, &old);
  CHECK_EQ(r, -EFAULT, "no descriptor left");
  CHECK(err == EMFILE, "no descriptor left: errno %s", t_errno(err));
  CHECK_EQ((intptr_t)target, 0x5a, "*target_addr");
  CHECK_OK(lib.regmem(0, m, T_PAGE, &target), 0, "with descriptors");
  CHECK_OK(lib.close(0), 0, "host");
}
static void none_left_for_the_check_of_host_memory(void) {
  HOST_ONLY("the host connector's own check");
  char text[2048] = "";
  int log = memfd_create("log", 0);
  CHECK_EXIT(t_spawn("none_for_the_check", (const char *const[]){"PHXFS_LOG=error", "PHXFS_LOG_FILE", NULL}, -1, log), 0, "child");
  CHECK(pread(log, text, sizeof text - 1, 0) > 0 && strstr(text, "call=phxfs_regmem") && strstr(text, "errno=EMFILE") &&
        strstr(text, "open /proc/self/maps"), "log: %s", text);
  close(log);
}

static void zero_to_two_closed(void) {
  RUN_CHILD("closed", NULL);
  RUN_CHILD("closed", "TO_STDERR=1");
}
static void none_left_at_the_first_call(void) { RUN_CHILD("none_left", "EARLY=1"); }
static void none_left_later(void) { RUN_CHILD("none_left", "EARLY"); }

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(zero_to_two_closed), T_CASE(none_left_at_the_first_call), T_CASE(none_left_later),
                                 T_CASE(none_left_for_the_check_of_host_memory)};
  static const t_case children[] = {{"closed", child_closed}, {"none_left", child_none_left},
                                    {"none_for_the_check", child_none_for_the_check}, {0}};
  return T_RUN(argc, argv, cases, children);
}
