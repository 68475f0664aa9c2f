/* The default build (NVIDIA) on a machine without GPU and module: it says so,
 * and everything that needs neither works. */
#include "t.h"

static bool gpu_here(void) {
  return !access("/dev/phxfs_dev0", F_OK) || !access("/dev/nvidiactl", F_OK) || !access("/sys/class/phxfs-generic", F_OK);
}

static void child_absent(void) {
  void *target = (void *)0x5a;
  char *m = t_map(T_PAGE);
  for (int i = 0; i < 8; i++) {
    CHECK_ERR(phxfs_open(i), -1, ENOENT, "no node %d", i);
    CHECK_ERR(phxfs_close(i), -1, ENODEV, "not open: %d", i);
    CHECK_ERR(phxfs_find_dev(i), -1, ENODEV, "no vendor library: %d", i);
    CHECK_ERR(phxfs_find_dev_for_cuda_gpu(i), -1, ENODEV, "no vendor library: %d", i);
    CHECK_ERR(phxfs_regmem(i, m, T_PAGE, &target), -EINVAL, ENODEV, "not open: %d", i);
    CHECK_ERR(phxfs_deregmem(i, m, T_PAGE), -1, ENODEV, "not open: %d", i);
    CHECK_ERR(phxfs_read(0, i, m, 0, 16, 0), -1, ENODEV, "not open: %d", i);
  }
  CHECK_ERR(phxfs_open(8), -1, EINVAL, "8");
  CHECK_ERR(phxfs_find_dev(-1), -1, EINVAL, "-1");
  CHECK_EQ((intptr_t)target, 0x5a, "*target_addr");
  CHECK_OK(phxfs_get_page_size(), 65536, "NVIDIA");
  const char *name = phxfs_io_engine_name();
  CHECK(name && (!strcmp(name, "sync") || !strcmp(name, "io_uring")), "engine %s", name ? name : "NULL");
}

static void child_cpu_buffers(void) {
  char *m = t_map(T_PAGE);
  int fd = t_file(T_PAGE, 1), out = t_file(0, 0);
  phxfs_io_req_t q[5];
  for (int i = 0; i < 4; i++) q[i] = (phxfs_io_req_t){fd, -1, m, i * 16384, 16384, i * 16384, 0};
  q[4] = (phxfs_io_req_t){fd, 0, m, 0, 16, 0, 0};
  CHECK_OK(phxfs_read(fd, -1, m, 0, 4096, 4096), 4096, "single");
  CHECK_DATA(m, 4096, 1, 4096, "single");
  CHECK_OK(phxfs_read_batch(q, 5), 1, "four CPU buffers and a device");
  CHECK_EQ(q[4].result, -EFAULT, "the device is not open");
  CHECK_DATA(m, T_PAGE, 1, 0, "batch");
  for (int i = 0; i < 4; i++) q[i].fd = out;
  phxfs_batch_t *h = phxfs_batch_submit_write(q, 4);
  CHECK_OK(phxfs_batch_wait(h), 0, "async");
  memset(m, 0, T_PAGE);
  CHECK_OK(phxfs_read(out, -1, m, 0, (ssize_t)T_PAGE, 0), (long long)T_PAGE, "back");
  CHECK_DATA(m, T_PAGE, 1, 0, "what was written");
}

static void no_device_is_reported_as_such(void) {
  if (gpu_here()) T_SKIP(NULL, "a machine without GPU driver and phxfs module");
  RUN_CHILD("absent", "PHXFS_VENDOR");
}
static void nvidia_by_name_is_the_default(void) {
  if (gpu_here()) T_SKIP(NULL, "a machine without GPU driver and phxfs module");
  RUN_CHILD("absent", "PHXFS_VENDOR=NVIDIA");
}
static void cpu_buffers_work(void) { RUN_CHILD("cpu_buffers", "PHXFS_VENDOR"); }

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(no_device_is_reported_as_such), T_CASE(nvidia_by_name_is_the_default), T_CASE(cpu_buffers_work)};
  static const t_case children[] = {{"absent", child_absent}, {"cpu_buffers", child_cpu_buffers}, {0}};
  return T_RUN(argc, argv, cases, children);
}
