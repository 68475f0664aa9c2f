/* phxfs_get_map_mode and PHXFS_MODE: which way to device memory is taken, and
 * that it is the one that was asked for. */
#include "t.h"
#include "t_data.h"

enum { FULL = 0, STAGED = 2 };

static char *m;

/* One registration of 40 pages: everything once. */
static void transfers(const char *who) {
  const size_t n = 40 * T_PAGE;
  void *target = NULL;
  int fd = t_file(n + 100, 1), out = t_file(0, 0);
  phxfs_io_req_t q[4] = {{fd, 0, m + 1, 0, n - 1, 0, 0}, {fd, 0, m, 0, 1, 7, 0}, {fd, 0, m, (off_t)n - 10, 11, 0, 0}, {fd, 0, m + T_PAGE, 0, T_PAGE, (off_t)n, 0}};
  CHECK_OK(phxfs_regmem(0, m, n, &target), 0, "%s", who);
  CHECK(target == m, "%s: the target is %p, the memory %p", who, target, (void *)m);
  CHECK_OK(phxfs_read(fd, 0, m, 0, (ssize_t)n, 100), (ssize_t)n, "%s", who);
  CHECK_DATA(m, n, 1, 100, "%s", who);
  CHECK_OK(phxfs_write(out, 0, m, 0, (ssize_t)n, 0), (ssize_t)n, "%s", who);
  CHECK_OK(phxfs_read_batch(q, 1), 0, "%s", who);
  CHECK_DATA(m + 1, n - 1, 1, 0, "%s", who);
  CHECK_OK(phxfs_read_batch(q, 4), 2, "%s: one outside, one short", who);
  CHECK(q[1].result == 1 && q[2].result == -EFAULT && q[3].result == 100, "%s: %zd %zd %zd", who, q[1].result, q[2].result, q[3].result);
  memset(m, 0, n);
  q[0] = (phxfs_io_req_t){out, 0, m, 0, n, 0, 0};
  CHECK_OK(phxfs_batch_wait(phxfs_batch_submit_read(q, 1)), 0, "%s", who);
  CHECK_DATA(m, n, 1, 100, "%s: what was written", who);
  CHECK_OK(phxfs_deregmem(0, m, n), 0, "%s", who);
  CHECK_ERR(phxfs_read(fd, 0, m, 0, 16, 0), -1, EFAULT, "%s", who);
  close(fd), close(out);
}

static void child_host(void) {
  int want = atoi(getenv("T_WANT"));
  m = t_map(40 * T_PAGE);
  CHECK_ERR(phxfs_get_map_mode(0), -ENODEV, ENODEV, "not open");
  CHECK_ERR(phxfs_get_map_mode(-1), -EINVAL, EINVAL, "-1");
  CHECK_ERR(phxfs_get_map_mode(8), -EINVAL, EINVAL, "8");
  CHECK_OK(phxfs_find_dev(3), 3, "host");
  CHECK_OK(phxfs_open(0), 0, "host");
  CHECK_OK(phxfs_get_map_mode(0), want, "host, PHXFS_MODE %s", getenv("PHXFS_MODE"));
  CHECK_ERR(phxfs_get_map_mode(7), -ENODEV, ENODEV, "another one, not open");
  for (int i = 0; i < 3; i++) transfers(getenv("PHXFS_MODE") ? getenv("PHXFS_MODE") : "no PHXFS_MODE");
  CHECK_OK(phxfs_close(0), 0, "host");
  CHECK_ERR(phxfs_get_map_mode(0), -ENODEV, ENODEV, "closed");
  CHECK_OK(phxfs_open(0), 0, "again");
  transfers("again");
  CHECK_OK(phxfs_close(0), 0, "again");
}

static void host(const char *mode, const char *want) { RUN_CHILD("host", "PHXFS_VENDOR=HOST", mode, want, "PHXFS_STAGING_MB"); }
static void full_by_default(void) { host("PHXFS_MODE", "T_WANT=0"); }
static void full(void) { host("PHXFS_MODE=Full", "T_WANT=0"); }
static void an_unknown_word_is_full(void) { host("PHXFS_MODE=staging", "T_WANT=0"); }
static void auto_on_plain_memory_is_full(void) { host("PHXFS_MODE=auto", "T_WANT=0"); }
static void host_staging(void) { host("PHXFS_MODE=host_staging", "T_WANT=2"); }
static void host_staging_with_little_memory(void) {
  RUN_CHILD("host", "PHXFS_VENDOR=HOST", "PHXFS_MODE=host_staging", "T_WANT=2", "PHXFS_STAGING_MB=1");
  RUN_CHILD("host", "PHXFS_VENDOR=HOST", "PHXFS_MODE=HOST_STAGING", "T_WANT=2", "PHXFS_STAGING_MB=3", "PHXFS_IO_ENGINE=sync");
}

/* A forked child uses the parent's staged registration, and makes its own. */
static void in_the_child(void *arg) {
  int fd = *(int *)arg;
  memset(m, 0, 4 * T_PAGE);
  CHECK_OK(phxfs_get_map_mode(0), STAGED, "the child");
  CHECK_OK(phxfs_read(fd, 0, m, 0, 4 * T_PAGE, 0), 4 * T_PAGE, "the parent's registration");
  CHECK_DATA(m, 4 * T_PAGE, 1, 0, "the parent's registration");
  CHECK_OK(phxfs_deregmem(0, m, 4 * T_PAGE), 0, "dropped here");
  transfers("the child");
  CHECK_OK(phxfs_close(0), 0, "the parent's open");
  CHECK_ERR(phxfs_get_map_mode(0), -ENODEV, ENODEV, "closed in the child");
}
static void child_fork(void) {
  void *target;
  int fd = t_file(4 * T_PAGE, 1);
  m = t_map(40 * T_PAGE);
  CHECK_OK(phxfs_open(0), 0, "host");
  CHECK_OK(phxfs_regmem(0, m, 4 * T_PAGE, &target), 0, "the parent's");
  CHECK_OK(phxfs_read(fd, 0, m, 0, 16, 0), 16, "the parent, before");
  for (int i = 0; i < 3; i++) {
    CHECK_EXIT(t_fork(in_the_child, &fd), 0, "child");
    CHECK_OK(phxfs_read(fd, 0, m, 0, 4 * T_PAGE, 0), 4 * T_PAGE, "the parent, afterwards");
    CHECK_DATA(m, 4 * T_PAGE, 1, 0, "the parent, afterwards");
  }
  CHECK_OK(phxfs_close(0), 0, "host");
}
static void forked_children_stage_too(void) {
#ifdef __SANITIZE_ADDRESS__
  T_SKIP(NULL, "a build with AddressSanitizer is not reset in children");
#endif
  RUN_CHILD("fork", "PHXFS_VENDOR=HOST", "PHXFS_MODE=host_staging");
}

/* Never silently on the CPU. */
static void child_no_gpu(void) {
  CHECK_ERR(phxfs_find_dev(0), -1, ENODEV, "no GPU");
  CHECK_ERR(phxfs_open(0), -1, ENODEV, "no GPU");
  CHECK_ERR(phxfs_get_map_mode(0), -ENODEV, ENODEV, "no GPU");
}
static void without_a_gpu_there_is_no_device(void) {
  if (!access("/dev/phxfs_dev0", F_OK) || !access("/dev/nvidiactl", F_OK)) T_SKIP(NULL, "a machine without GPU driver and phxfs module");
  RUN_CHILD("no_gpu", "PHXFS_VENDOR=NVIDIA", "PHXFS_MODE=host_staging");
  RUN_CHILD("no_gpu", "PHXFS_VENDOR=NVIDIA", "PHXFS_MODE=auto");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(full_by_default), T_CASE(full), T_CASE(an_unknown_word_is_full), T_CASE(auto_on_plain_memory_is_full), T_CASE(host_staging),
    T_CASE(host_staging_with_little_memory), T_CASE(forked_children_stage_too), T_CASE(without_a_gpu_there_is_no_device),
  };
  static const t_case children[] = {{"host", child_host}, {"fork", child_fork}, {"no_gpu", child_no_gpu}, {0}};
  return T_RUN(argc, argv, cases, children);
}
