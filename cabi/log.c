#define _GNU_SOURCE
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "state.h"

int phx_log_level(struct phx_state *s) {
  struct phx_env *e = atomic_load(&s->env);
  return e ? e->log_level : PHX_LOG_OFF;
}

const char *phx_errno_name(int e) {
  switch (e) {
    case EPERM: return "EPERM";
    case EINTR: return "EINTR";
    case EIO: return "EIO";
    case EBADF: return "EBADF";
    case EAGAIN: return "EAGAIN";
    case ENOMEM: return "ENOMEM";
    case EFAULT: return "EFAULT";
    case EBUSY: return "EBUSY";
    case ENODEV: return "ENODEV";
    case EINVAL: return "EINVAL";
    case ENOTTY: return "ENOTTY";
    case ENOSYS: return "ENOSYS";
    case ESHUTDOWN: return "ESHUTDOWN";
    case ETIMEDOUT: return "ETIMEDOUT";
    default: return "other";
  }
}

void phx_log_line(struct phx_state *s, int level, const char *text, size_t len) {
  static const char *const names[] = {"", "error", "warn", "info", "debug"};
  struct phx_env *e = atomic_load(&s->env);
  if (!e || level < PHX_LOG_ERROR || level > e->log_level) return;
  int saved = errno, fd = -1, cancel;
  /* open and writev are cancellation points; a thread that ended here would
   * stay inside the library for ever. */
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  if (*e->log_file) {
    fd = open(e->log_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
  }
  char head[64];
  int n = snprintf(head, sizeof head, "libphoenix[%d] %s ", (int)getpid(), names[level]);
  struct iovec v[3] = {{head, (size_t)n}, {(void *)text, len}, {"\n", 1}};
  while (writev(fd < 0 ? STDERR_FILENO : fd, v, 3) < 0 && errno == EINTR) {
  }
  if (fd >= 0) close(fd);
  pthread_setcancelstate(cancel, NULL);
  errno = saved;
}

void phx_log(struct phx_state *s, int level, const char *format, ...) {
  char text[1024];
  if (level > phx_log_level(s)) return;
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  if (n < 0) return;
  phx_log_line(s, level, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}
