/* settle.h - the first call of each thread. */
#ifndef PHX_SETTLE_H
#define PHX_SETTLE_H

#include <stdbool.h>

#include "image.h"

struct phx_state;

#ifdef PHX_NO_IMAGE
extern _Thread_local bool phx_settled __attribute__((visibility("hidden"), tls_model("initial-exec")));
#endif

/* True for a thread that has not called Go yet, or whose Go part has ended (in
 * its last destructors). Goes by Go's one word of thread-local memory. A build
 * without an image does not know that word and has one of its own, which does
 * not see the Go part end. */
static inline bool phx_newcomer(const struct phx_image *m) {
#ifdef PHX_NO_IMAGE
  (void)m;
  return !phx_settled;
#else
  if (!m->tls) return false;
#if defined(__x86_64__)
  void *word;
  __asm__("movq %%fs:(%1), %0" : "=r"(word) : "r"(m->tls));
  return !word;
#else
  return !*(void **)((char *)__builtin_thread_pointer() + m->tls);
#endif
#endif
}

/* Makes a newcomer known to Go, with its signal mask as it was. One thread at a
 * time. */
void phx_settle(struct phx_state *s);

#endif
