#define _GNU_SOURCE
#include "single.h"

#include <errno.h>
#include <stdbool.h>
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

/* Bytes moved. *err: why not all; 0: the file has ended. */
static size_t transfer(int write, int fd, char *p, size_t n, off_t off, int *err) {
  size_t done = 0;
  while (done < n) {
    long r = move(write, fd, p + done, n - done, off + (off_t)done);
    if (r < 0) *err = (int)-r;
    if (r <= 0) break;
    done += (size_t)r;
  }
  return done;
}

#define CALL(write) ((write) ? "phxfs_write" : "phxfs_read")

/* The line of a call in a signal handler that has interrupted another call,
 * which may be in Go: Go cannot be entered a second time there. */
static void tell_plainly(struct phx_state *s, int level, int write, int fd, int device_id, const char *at,
                         ssize_t nbyte, off_t f_offset, int err) {
  phx_log(s, level, "call=%s device=%d address=0x%llx length=%lld offset=%lld fd=%d%s%s reason=\"%s, in a signal handler\"",
          CALL(write), device_id, (unsigned long long)(uintptr_t)at, (long long)nbyte, (long long)f_offset, fd,
          err ? " errno=" : "", err ? phx_errno_name(err) : "", level == PHX_LOG_ERROR ? "failed" : "fell short");
}

/* Has Go write the line: it explains EINVAL under O_DIRECT. Nobody listening,
 * Go is not entered, nor started. */
static void tell(struct phx_state *s, int level, int write, int fd, int device_id, void *buf,
                 off_t buf_offset, ssize_t nbyte, off_t f_offset, size_t moved, int err) {
  struct phx_call c;
  if (phx_log_level(s) < level) return;
  if (phx_own_calls(s) > 1) {
    tell_plainly(s, level, write, fd, device_id, (char *)buf + buf_offset, nbyte, f_offset, err);
    return;
  }
  if (phx_enter(&c, CALL(write))) return;
  go_single_short(write, fd, device_id, (uintptr_t)buf, buf_offset, nbyte, f_offset, moved, err);
  phx_leave(&c);
}

ssize_t phx_single(struct phx_state *s, int write, int fd, int device_id, void *buf,
                   off_t buf_offset, ssize_t nbyte, off_t f_offset) {
  int saved = errno, err = 0;
  size_t moved = 0;
  if (bad(buf, buf_offset, nbyte, f_offset))
    err = EINVAL;
  else
    moved = transfer(write, fd, (char *)buf + buf_offset, (size_t)nbyte, f_offset, &err);
  bool failed = err && !moved; /* progress wins over a later error */
  if (__builtin_expect(failed || moved < (size_t)nbyte, 0))
    tell(s, failed ? PHX_LOG_ERROR : PHX_LOG_DEBUG, write, fd, device_id, buf, buf_offset, nbyte, f_offset, moved, err);
  errno = failed ? err : saved;
  return failed ? -err : (ssize_t)moved;
}
