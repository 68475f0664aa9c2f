/* Every kind of descriptor, in single calls and in batches: the same answer as
 * pread and pwrite, and a stream is not consumed. */
#include "t.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

static char *cpu, *dev;

/* One request through the four read (or write) paths; n > 1 goes other ways
 * through the engine than n == 1. */
static void all_paths(const char *what, int fd, bool write, size_t n, off_t off, ssize_t want) {
  int eno = want < 0 ? (int)-want : T_ERRNO_MARK;
  for (int device = -1; device <= 0; device++) {
    char *buf = device ? cpu : dev;
    errno = T_ERRNO_MARK;
    ssize_t r = write ? phxfs_write(fd, device, buf, 0, (ssize_t)n, off) : phxfs_read(fd, device, buf, 0, (ssize_t)n, off);
    t_int(__FILE__, __LINE__, "single", r, want, errno, eno, "%s, device %d, %zu bytes at %lld", what, device, n, (long long)off);
    for (int k = 1; k <= 3; k += 2) {
      phxfs_io_req_t q[3];
      for (int i = 0; i < k; i++) q[i] = (phxfs_io_req_t){fd, device, buf, i * 8192, n, off, 111};
      CHECK_OK(write ? phxfs_write_batch(q, k) : phxfs_read_batch(q, k), want == (ssize_t)n ? 0 : k, "%s, batch of %d", what, k);
      for (int i = 0; i < k; i++) CHECK_EQ(q[i].result, want, "%s, request %d of %d, device %d", what, i, k, device);
      for (int i = 0; i < k; i++) q[i].result = 111;
      phxfs_batch_t *h = write ? phxfs_batch_submit_write(q, k) : phxfs_batch_submit_read(q, k);
      CHECK_OK(phxfs_batch_wait(h), want == (ssize_t)n ? 0 : k, "%s, async batch of %d", what, k);
      for (int i = 0; i < k; i++) CHECK_EQ(q[i].result, want, "%s, async, request %d of %d, device %d", what, i, k, device);
    }
  }
}

static void streams_cannot_seek(void) {
  int p[2], s[2], e = eventfd(5, EFD_CLOEXEC | EFD_NONBLOCK);
  NEED(!pipe2(p, O_CLOEXEC | O_NONBLOCK) && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s) && e >= 0, "%s", t_errno(errno));
  CHECK(write(p[1], "pipe", 4) == 4 && write(s[1], "sock", 4) == 4, "fill");
  all_paths("pipe with data", p[0], false, 4, 0, -ESPIPE);
  all_paths("pipe", p[1], true, 4, 0, -ESPIPE);
  all_paths("socket with data", s[0], false, 4, 0, -ESPIPE);
  all_paths("socket", s[0], true, 4, 0, -ESPIPE);
  all_paths("eventfd", e, false, 8, 0, -ESPIPE);
  all_paths("pipe, 0 bytes", p[0], false, 0, 0, 0);
  char b[16];
  CHECK_EQ(read(p[0], b, sizeof b), 4, "the pipe still holds its data");
  CHECK_EQ(read(s[0], b, sizeof b), 4, "the socket still holds its data");
  CHECK_EQ(read(s[1], b, sizeof b), -1, "nothing was sent");
  close(p[0]), close(p[1]), close(s[0]), close(s[1]), close(e);
}

static void directions_and_directories(void) {
  int rw = t_file(32768, 1), ro = t_reopen(rw, O_RDONLY), wo = t_reopen(rw, O_WRONLY);
  int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), path = t_reopen(rw, O_PATH);
  all_paths("directory", dir, false, 512, 0, -EISDIR);
  all_paths("directory", dir, true, 512, 0, -EBADF);
  all_paths("read-only file", ro, true, 512, 0, -EBADF);
  all_paths("write-only file", wo, false, 512, 0, -EBADF);
  all_paths("O_PATH", path, false, 512, 0, -EBADF);
  all_paths("read-only file", ro, false, 512, 0, 512);
  all_paths("closed", t_closed_fd(), false, 512, 0, -EBADF);
  all_paths("closed", t_closed_fd(), true, 512, 0, -EBADF);
  all_paths("closed, 0 bytes", t_closed_fd(), false, 0, 0, 0);
  all_paths("closed, 0 bytes", t_closed_fd(), true, 0, 0, 0);
  close(rw), close(ro), close(wo), close(dir), close(path);
}

static void files_without_a_size(void) {
  int zero = open("/dev/zero", O_RDWR | O_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC), full = open("/dev/full", O_RDWR | O_CLOEXEC);
  memset(cpu, 1, 512), memset(t_host(dev), 1, 512);
  all_paths("/dev/zero", zero, false, 512, 0, 512);
  CHECK(cpu[511] == 0 && ((char *)t_host(dev))[511] == 0, "zeros");
  all_paths("/dev/null", null, false, 512, 0, 0);
  all_paths("/dev/null", null, true, 512, 0, 512);
  all_paths("/dev/full", full, true, 512, 0, -ENOSPC);
  int proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  phxfs_io_req_t q = {proc, -1, cpu, 0, 65536, 0, 0};
  CHECK_OK(phxfs_read_batch(&q, 1), 1, "/proc/self/status ends before 64 KiB");
  CHECK(q.result > 100 && !memcmp(cpu, "Name:", 5), "/proc/self/status: %zd bytes", q.result);
  close(zero), close(null), close(full), close(proc);
}

static void appended_writes_behave_as_pwrite(void) {
  /* Linux appends whatever the offset says; two requests in a batch keep all bytes. */
  int fd = t_file(100, 1), app = t_reopen(fd, O_WRONLY | O_APPEND);
  phxfs_io_req_t q[4];
  memset(t_host(dev), 'a', 65536);
  for (int i = 0; i < 4; i++) q[i] = (phxfs_io_req_t){app, 0, dev, i * 4096, 4096, i * 4096, 0};
  CHECK_OK(phxfs_write_batch(q, 4), 0, "O_APPEND");
  struct stat st;
  fstat(fd, &st);
  CHECK_EQ(st.st_size, 100 + 4 * 4096, "size of the file");
  close(fd), close(app);
}

static void direct_io(void) {
  int fd = t_file(40960 + 1000, 7), d = t_reopen(fd, O_RDWR | O_DIRECT);
  if (d < 0 || pread(d, cpu, 4096, 0) != 4096) T_SKIP("odirect", "O_DIRECT on the file system of the current directory: %s", t_errno(errno));
  all_paths("O_DIRECT, aligned", d, false, 8192, 4096, 8192);
  CHECK_DATA(dev, 8192, 7, 4096, "O_DIRECT");
  CHECK_DATA(cpu, 8192, 7, 4096, "O_DIRECT");
  all_paths("O_DIRECT, tail of the file", d, false, 8192, 40960, 1000);
  all_paths("O_DIRECT, behind the end", d, false, 8192, 49152, 0);
  t_fill(cpu, 65536, 8, 0), t_fill(dev, 65536, 8, 0);
  all_paths("O_DIRECT, aligned", d, true, 4096, 0, 4096);
  /* Unaligned: whatever this kernel says to pread must come out of every path. */
  static const struct {
    const char *what;
    size_t buf, n;
    off_t off;
  } rows[] = {{"offset", 0, 4096, 1}, {"length", 0, 1000, 0}, {"address", 1, 4096, 0}, {"offset by 256", 0, 4096, 256}, {"all", 3, 77, 5}};
  int refused = 0;
  char *keep = dev;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ssize_t r = pread(d, cpu + rows[i].buf, rows[i].n, rows[i].off);
    if (r < 0) r = -errno;
    refused += r == -EINVAL;
    cpu += rows[i].buf, dev += rows[i].buf;
    all_paths(rows[i].what, d, false, rows[i].n, rows[i].off, r);
    cpu -= rows[i].buf, dev = keep;
  }
  if (!refused) T_SKIP("odirect", "a file system that refuses unaligned O_DIRECT (tmpfs takes it)");
  /* A good neighbour of an unaligned request. */
  phxfs_io_req_t q[3] = {{d, 0, dev, 0, 4096, 4096, 0}, {d, 0, dev, 8192, 4096, 1, 0}, {d, -1, cpu, 0, 4096, 8192, 0}};
  CHECK_OK(phxfs_read_batch(q, 3), 1, "one unaligned of three");
  CHECK_EQ(q[0].result, 4096, "before");
  CHECK_EQ(q[1].result, -EINVAL, "unaligned");
  CHECK_EQ(q[2].result, 4096, "behind");
  close(fd), close(d);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(streams_cannot_seek), T_CASE(directions_and_directories), T_CASE(files_without_a_size),
    T_CASE(appended_writes_behave_as_pwrite), T_CASE(direct_io),
  };
  void *target;
  t_use_host();
  cpu = t_map(2 * T_PAGE), dev = t_map(2 * T_PAGE);
  if (phxfs_open(0) || phxfs_regmem(0, dev, 2 * T_PAGE, &target)) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
