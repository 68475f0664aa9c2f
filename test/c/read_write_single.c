/* phxfs_read and phxfs_write, CPU buffers and registered ones: the bytes that
 * move, the ends of files, and what happens when half of it fails. */
#include "t.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

static char *m; /* 4 pages, of: */
static char *cpu, *registered; /* on device 0 */
static const size_t LEN = 4 * T_PAGE;

/* Each story runs with a CPU buffer and with the registered one. */
static int device;
static void both(void (*story)(void)) {
  for (device = -1; device <= 0; device++) m = device < 0 ? cpu : registered, story();
}

static void odd_places(void) {
  static const struct {
    size_t buf, n;
    off_t buf_offset, f_offset;
  } rows[] = {{0, 1, 0, 0}, {1, 1, 0, 1}, {0, 4096, 0, 0}, {3, 4097, 5, 7}, {0, 65536, 1, 4095},
              {65535, 2, 0, 0}, {65000, 70000, 1000, 100001}, {0, 262144, 0, 0}, {131072, 131072, 0, 1},
              {0, 262143, 1, 3}, {0, 0, 262144, 5}};
  int fd = t_file(1 << 19, 1), out = t_file(0, 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    size_t at = rows[i].buf + (size_t)rows[i].buf_offset, n = rows[i].n;
    memset(t_host(m), 0x77, LEN);
    CHECK_OK(phxfs_read(fd, device, m + rows[i].buf, rows[i].buf_offset, (ssize_t)n, rows[i].f_offset), (long long)n, "row %zu, device %d", i, device);
    CHECK_DATA(m + at, n, 1, (uint64_t)rows[i].f_offset, "row %zu, device %d", i, device);
    char *host = t_host(m);
    CHECK(at == 0 || host[at - 1] == 0x77, "row %zu: the byte before is written", i);
    CHECK(at + n == LEN || host[at + n] == 0x77, "row %zu: the byte behind is written", i);
    CHECK_OK(phxfs_write(out, device, m + rows[i].buf, rows[i].buf_offset, (ssize_t)n, rows[i].f_offset), (long long)n, "row %zu, device %d", i, device);
    char *back = malloc(n + 1);
    CHECK_EQ(pread(out, back, n, rows[i].f_offset), n, "row %zu", i);
    CHECK_DATA(back, n, 1, (uint64_t)rows[i].f_offset, "written, row %zu, device %d", i, device);
    free(back);
  }
  CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0, "the file's own offset");
  CHECK_EQ(lseek(out, 0, SEEK_CUR), 0, "the file's own offset");
  close(fd), close(out);
}

static void end_of_file(void) {
  int fd = t_file(10000, 2);
  memset(t_host(m), 0x77, LEN);
  CHECK_OK(phxfs_read(fd, device, m, 0, 16384, 0), 10000, "device %d", device);
  CHECK_DATA(m, 10000, 2, 0, "device %d", device);
  CHECK(((char *)t_host(m))[10000] == 0x77, "written behind the end");
  CHECK_OK(phxfs_read(fd, device, m, 0, 16384, 9999), 1, "device %d", device);
  CHECK_OK(phxfs_read(fd, device, m, 0, 16384, 10000), 0, "device %d", device);
  CHECK_OK(phxfs_read(fd, device, m, 0, 16384, (off_t)1 << 40), 0, "device %d", device);
  CHECK_OK(phxfs_read(fd, device, m, 0, 4096, (off_t)1 << 50), pread(fd, t_host(m), 4096, (off_t)1 << 50) < 0 ? -errno : 0, "far away, device %d", device);
  CHECK_OK(phxfs_write(fd, device, m, 0, 100, 19900), 100, "a hole, device %d", device);
  CHECK_OK(phxfs_read(fd, device, m, 0, 16384, 10000), 10000, "hole and end, device %d", device);
  close(fd);
}

static void nothing_needs_no_file(void) {
  CHECK_OK(phxfs_read(-1, device, m, 0, 0, 0), 0, "fd -1, device %d", device);
  CHECK_OK(phxfs_write(t_closed_fd(), device, m, 5, 0, 12345), 0, "closed fd, device %d", device);
  CHECK_OK(phxfs_read(INT_MIN, device, m, (off_t)LEN, 0, INT64_MAX), 0, "at the end, device %d", device);
}

/* Progress wins over a later error: the second page cannot be touched. */
static void progress_wins(void) {
  int fd = t_file(32768, 3);
  memset(t_host(m), 0, 8192);
  mprotect((char *)t_host(m) + 4096, 4096, PROT_NONE);
  if (device >= 0 && t_staged()) {
    CHECK_ERR(phxfs_read(fd, device, m, 0, 8192, 0), t_before_hole(4096), EFAULT, "second page not accessible, staged");
    CHECK_ERR(phxfs_write(fd, device, m, 0, 8192, 8192), t_before_hole(4096), EFAULT, "second page not accessible, staged");
  } else {
    CHECK_OK(phxfs_read(fd, device, m, 0, 8192, 0), 4096, "second page not accessible, device %d", device);
    CHECK_DATA(m, 4096, 3, 0, "device %d", device);
    CHECK_OK(phxfs_write(fd, device, m, 0, 8192, 8192), 4096, "second page not accessible, device %d", device);
  }
  CHECK_ERR(phxfs_read(fd, device, m + 4096, 0, 4096, 0), -EFAULT, EFAULT, "no progress, device %d", device);
  CHECK_ERR(phxfs_write(fd, device, m + 4096, 0, 4096, 0), -EFAULT, EFAULT, "no progress, device %d", device);
  mprotect((char *)t_host(m) + 4096, 4096, PROT_READ | PROT_WRITE);
  /* And a limit of file size that is reached half way. */
  struct rlimit old, limit;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &old);
  limit = (struct rlimit){40960, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  CHECK_OK(phxfs_write(fd, device, m, 0, 8192, 36864), 4096, "half is beyond the limit, device %d", device);
  CHECK_ERR(phxfs_write(fd, device, m, 0, 8192, 40960), -EFBIG, EFBIG, "all is beyond the limit, device %d", device);
  setrlimit(RLIMIT_FSIZE, &old);
  close(fd);
}

/* /dev/zero and /dev/null behave as for pread and pwrite. */
static void devices_without_size(void) {
  int zero = open("/dev/zero", O_RDWR | O_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC);
  memset(t_host(m), 1, 8192);
  CHECK_OK(phxfs_read(zero, device, m, 0, 8192, 0), 8192, "/dev/zero");
  CHECK_EQ(((char *)t_host(m))[8191], 0, "/dev/zero");
  CHECK_OK(phxfs_read(null, device, m, 0, 8192, 0), 0, "/dev/null");
  CHECK_OK(phxfs_write(null, device, m, 0, 8192, 0), 8192, "/dev/null");
  close(zero), close(null);
}

#define STORY(f) \
  static void f##_cpu_and_registered(void) { both(f); }
STORY(odd_places) STORY(end_of_file) STORY(nothing_needs_no_file) STORY(progress_wins) STORY(devices_without_size)

/* One system call moves less than 2 GiB, one piece is 1 GiB: more must be looped. */
static void huge_count_reads_to_the_end(void) {
  static char small[8192]; /* in the program's image, far below the top of memory */
  int fd = t_file(sizeof small, 4);
  CHECK_OK(phxfs_read(fd, -1, small, 0, SSIZE_MAX, 0), (long long)sizeof small, "nbyte SSIZE_MAX");
  CHECK_DATA(small, sizeof small, 4, 0, "nbyte SSIZE_MAX");
  close(fd);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(odd_places_cpu_and_registered),   T_CASE(end_of_file_cpu_and_registered),
    T_CASE(nothing_needs_no_file_cpu_and_registered), T_CASE(progress_wins_cpu_and_registered),
    T_CASE(devices_without_size_cpu_and_registered), T_CASE(huge_count_reads_to_the_end),
  };
  void *target;
  t_use_host();
  cpu = t_map(LEN), registered = t_map(LEN);
  if (phxfs_open(0) || phxfs_regmem(0, registered, LEN, &target)) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
