/* The default build (NVIDIA) on a machine without GPU and module: it says so,
 * and everything that needs neither works. So it is with the other vendors,
 * whatever the mode: nothing is done on the CPU instead. */
#include "t.h"

static bool gpu_here(void) {
  static const char *const traces[] = {"/dev/phxfs_dev0", "/dev/nvidiactl", "/dev/kfd", "/dev/davinci_manager", "/sys/class/phxfs-generic"};
  for (size_t i = 0; i < sizeof traces / sizeof *traces; i++)
    if (!access(traces[i], F_OK)) return true;
  return false;
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

/* T_SAYS: the reason, in the log. */
static void child_staged(void) {
  void *target = (void *)0x5a;
  char *m = t_map(T_PAGE), line[1024];
  int fd = t_file(T_PAGE, 1);
  for (int i = 0; i < 8; i++) {
    CHECK_ERR(phxfs_open(i), -1, ENODEV, "%d", i);
    CHECK_ERR(phxfs_find_dev(i), -1, ENODEV, "%d", i);
    CHECK_ERR(phxfs_open(i), -1, ENODEV, "%d, after find_dev", i);
    CHECK_ERR(phxfs_get_map_mode(i), -ENODEV, ENODEV, "not open: %d", i);
    CHECK_ERR(phxfs_regmem(i, m, T_PAGE, &target), -EINVAL, ENODEV, "not open: %d", i);
    CHECK_ERR(phxfs_read(fd, i, m, 0, 16, 0), -1, ENODEV, "not open: %d", i);
    CHECK_ERR(phxfs_close(i), -1, ENODEV, "not open: %d", i);
  }
  CHECK_EQ((intptr_t)target, 0x5a, "*target_addr");
  CHECK_EQ(m[0], 0, "nothing was read");
  int said = 0;
  FILE *log = fopen("log", "r");
  while (log && fgets(line, sizeof line, log)) said += strstr(line, "open") && strstr(line, getenv("T_SAYS"));
  CHECK(said >= 16, "%d lines about open say \"%s\", want one for each", said, getenv("T_SAYS"));
  CHECK(!log || !fclose(log), "log");
  unlink("log");
  CHECK_OK(phxfs_read(fd, -1, m, 0, 4096, 4096), 4096, "a CPU buffer");
  CHECK_DATA(m, 4096, 1, 4096, "a CPU buffer");
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
#define STAGED(vendor, mode, says) RUN_CHILD("staged", "PHXFS_VENDOR=" vendor, "PHXFS_MODE=" mode, "PHXFS_LOG=error", "PHXFS_LOG_FILE=log", "T_SAYS=" says)
static void staging_needs_a_device(void) {
  if (gpu_here()) T_SKIP(NULL, "a machine without GPU driver and phxfs module");
  STAGED("NVIDIA", "auto", "libcuda.so.1");
  STAGED("NVIDIA", "host_staging", "libcuda.so.1");
  STAGED("AMD", "auto", "libamdhip64.so");
  STAGED("AMD", "host_staging", "libamdhip64.so");
  STAGED("ASCEND", "auto", "ASCEND has no host staging");
  STAGED("ASCEND", "host_staging", "ASCEND has no host staging");
}
static void cpu_buffers_work(void) { RUN_CHILD("cpu_buffers", "PHXFS_VENDOR"); }

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(no_device_is_reported_as_such), T_CASE(nvidia_by_name_is_the_default), T_CASE(staging_needs_a_device), T_CASE(cpu_buffers_work)};
  static const t_case children[] = {{"absent", child_absent}, {"staged", child_staged}, {"cpu_buffers", child_cpu_buffers}, {0}};
  return T_RUN(argc, argv, cases, children);
}
