#include "t.h"

#include <fcntl.h>
#include <sys/mman.h>

/* Eight bytes at a time: splitmix64 of the position and the seed. */
static uint64_t word(uint32_t seed, uint64_t index) {
  uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u + ((uint64_t)seed << 32 | seed);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return z ^ (z >> 29);
}

static unsigned char byte(uint32_t seed, uint64_t at) {
  return (unsigned char)(word(seed, at / 8) >> (8 * (at % 8)));
}

void t_fill(void *to, size_t n, uint32_t seed, uint64_t first) {
  unsigned char *p = t_host(to);
  size_t i = 0;
  for (; i < n && (first + i) % 8; i++) p[i] = byte(seed, first + i);
  for (; i + 8 <= n; i += 8) {
    uint64_t w = word(seed, (first + i) / 8);
    memcpy(p + i, &w, 8);
  }
  for (; i < n; i++) p[i] = byte(seed, first + i);
}

long long t_wrong(const void *data, size_t n, uint32_t seed, uint64_t first) {
  const unsigned char *p = t_host(data);
  size_t i = 0;
  for (; i < n && (first + i) % 8; i++)
    if (p[i] != byte(seed, first + i)) return (long long)i;
  for (; i + 8 <= n; i += 8) {
    uint64_t w = word(seed, (first + i) / 8);
    if (memcmp(p + i, &w, 8)) break;
  }
  for (; i < n; i++)
    if (p[i] != byte(seed, first + i)) return (long long)i;
  return -1;
}

static void give_up(const char *what) {
  t_fail(__FILE__, __LINE__, "%s: %s", what, strerror(errno));
  fprintf(stderr, "t_data.c: %s: %s\n", what, strerror(errno));
  _exit(1);
}

int t_file(size_t size, uint32_t seed) {
  char name[] = "t_file_XXXXXX";
  int fd = mkostemp(name, O_CLOEXEC);
  if (fd < 0) give_up("mkostemp in the current directory");
  unlink(name);
  enum { PIECE = 1 << 16 };
  char *buf = malloc(PIECE); /* not on the stack: some threads of tests have little */
  for (size_t done = 0; done < size;) {
    size_t n = size - done < PIECE ? size - done : PIECE;
    t_fill(buf, n, seed, done);
    if (pwrite(fd, buf, n, (off_t)done) != (ssize_t)n) give_up("pwrite of a scratch file");
    done += n;
  }
  free(buf);
  return fd;
}

int t_reopen(int fd, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return open(path, flags | O_CLOEXEC);
}

int t_closed_fd(void) {
  int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 900);
  if (fd < 0) fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 900);
  if (fd >= 0) close(fd);
  return fd;
}

void *t_map(size_t len) {
  size_t all = len + 3 * T_PAGE;
  char *p = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) give_up("mmap");
  char *at = (char *)(((uintptr_t)p + 2 * T_PAGE - 1) & ~(T_PAGE - 1));
  if (at > p + T_PAGE) munmap(p, (size_t)(at - p) - T_PAGE);
  if (p + all > at + len + T_PAGE) munmap(at + len + T_PAGE, (size_t)(p + all - (at + len + T_PAGE)));
  if (mprotect(at, len, PROT_READ | PROT_WRITE)) give_up("mprotect");
  return at;
}

void t_unmap(void *p, size_t len) { munmap((char *)p - T_PAGE, len + 2 * T_PAGE); }
