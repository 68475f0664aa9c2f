/* t_barrier.h - I/O that stands still exactly where a test wants it.
 *
 * A barrier is a page range of anonymous memory watched by userfaultfd: the
 * kernel's copy into (or out of) it stops the thread that does the I/O, until
 * the test lets it go. */
#ifndef T_BARRIER_H
#define T_BARRIER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  int fd;
  void *page;
  size_t len;
} t_barrier;

/* Arms the barrier; the pages' content is dropped. Returns NULL, or why this
 * machine has no such barrier. page and len: multiples of 4096. */
const char *t_barrier_arm(t_barrier *b, void *page, size_t len);
/* Returns when a thread stands at the barrier; false after T_WAIT_SECONDS. */
bool t_barrier_reached(t_barrier *b);
/* Lets everyone go (the pages are zero, then the I/O goes on) and disarms. */
void t_barrier_release(t_barrier *b);

#define NEED_BARRIER(b, page, len)                                    \
  do {                                                                \
    const char *t_why = t_barrier_arm(b, page, len);                  \
    if (t_why) T_SKIP("userfaultfd", "%s", t_why);                    \
  } while (0)

#endif
