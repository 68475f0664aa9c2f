#define _GNU_SOURCE
#include "single.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "log.h"
#include "state.h"

#define CHUNK ((size_t)1 << 30) /* docs/abi.md: bytes per system call */

/* The argument checks of docs/abi.md for plain memory, in its order. */
static int bad(const void *buf, off_t buf_offset, ssize_t nbyte, off_t f_offset) {
  uintptr_t end;
  off_t last;
  return nbyte < 0 || f_offset < 0 || __builtin_add_overflow(f_offset, (off_t)nbyte, &last) ||
         buf_offset < 0 || __builtin_add_overflow((uintptr_t)buf, (uintptr_t)buf_offset, &end) ||
         __builtin_add_overflow(end, (uintptr_t)nbyte, &end);
}

/* syscall(2), not pread(3): those are cancellation points, and a cancelled
 * thread would stay counted as inside the library. */
static long move(int write, int fd, char *p, size_t n, off_t off) {
  long r;
  if (n > CHUNK) n = CHUNK;
  do r = syscall(write ? SYS_pwrite64 : SYS_pread64, fd, p, n, off);
  while (r < 0 && errno == EINTR);
  return r < 0 ? -errno : r;
}

static ssize_t transfer(int write, int fd, char *p, size_t n, off_t off) {
  size_t done = 0;
  while (done < n) {
    long r = move(write, fd, p + done, n - done, off + (off_t)done);
    if (r < 0) return done ? (ssize_t)done : r;
    if (r == 0) break;
    done += (size_t)r;
  }
  return (ssize_t)done;
}

/* Has Go write the line, which explains EINVAL under O_DIRECT. */
static void report(struct phx_state *s, int write, int fd, int device_id, void *buf,
                   off_t buf_offset, ssize_t nbyte, off_t f_offset, int err) {
  struct phx_call c;
  if (phx_log_level(s) < PHX_LOG_ERROR || phx_enter(&c, write ? "phxfs_write" : "phxfs_read")) return;
  go_single_failed(write, fd, device_id, (uintptr_t)buf, buf_offset, nbyte, f_offset, err);
  phx_leave(&c);
}

ssize_t phx_single(struct phx_state *s, int write, int fd, int device_id, void *buf,
                   off_t buf_offset, ssize_t nbyte, off_t f_offset) {
  int saved = errno;
  ssize_t r = bad(buf, buf_offset, nbyte, f_offset)
                  ? -EINVAL
                  : transfer(write, fd, (char *)buf + buf_offset, (size_t)nbyte, f_offset);
  if (__builtin_expect(r < 0, 0)) {
    report(s, write, fd, device_id, buf, buf_offset, nbyte, f_offset, (int)-r);
    errno = (int)-r;
  } else {
    errno = saved;
  }
  return r;
}
