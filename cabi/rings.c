#define _GNU_SOURCE
#include "rings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

/* The host may have closed our number and have another file there (closefrom);
 * without /proc nothing can be told, and nothing is closed. */
static int is_ring(int fd) {
  static const char ring[] = "anon_inode:[io_uring]";
  char path[32], target[sizeof ring];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return readlink(path, target, sizeof target) == (ssize_t)sizeof ring - 1 && !memcmp(target, ring, sizeof ring - 1);
}

void phx_rings_forked(struct phx_state *s) {
  int saved = errno;
  for (int i = 0; i < PHX_RING_FDS; i++) {
    int fd = atomic_exchange(&s->rings.held[i], 0) - 1;
    if (fd >= 0 && is_ring(fd)) close(fd);
  }
  errno = saved;
}

int32_t *phx_ring_fds(struct phx_state *s) { return (int32_t *)s->rings.held; }
