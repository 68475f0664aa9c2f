/* settle.h - the first call of each thread. */
#ifndef PHX_SETTLE_H
#define PHX_SETTLE_H

#include <stdbool.h>

#include "image.h"

struct phx_state;

/* True for a thread that has not called Go yet, or whose Go part has ended (in
 * its last destructors). Goes by Go's one word of thread-local memory; where
 * image.c has not found it (a sanitizer's build), false. */
static inline bool phx_newcomer(const struct phx_image *m) {
  if (!m->tls) return false;
#if defined(__x86_64__)
  void *word;
  __asm__("movq %%fs:(%1), %0" : "=r"(word) : "r"(m->tls));
  return !word;
#else
  return !*(void **)((char *)__builtin_thread_pointer() + m->tls);
#endif
}

/* Makes a newcomer known to Go, with its signal mask as it was. One thread at a
 * time. */
void phx_settle(struct phx_state *s);

#endif
