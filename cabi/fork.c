/* fork.c - what a forked child undoes, and in which order.
 *
 * The atfork child handler runs in the only thread of the child, which may
 * hold any lock of the host's (malloc's are safe in an atfork handler; we use
 * none). It
 *   1. counts the generation: handles of the parent are told apart;
 *   2. gives up Go's pthread key, whose destructor would call into a runtime
 *      that has no threads any more. Relied on: runtime/cgo makes exactly one
 *      key (gcc_libinit.c); --wrap=pthread_key_create tells us which;
 *   3. puts back the host's handlers where Go's are installed;
 *   4. restores the library's memory, so that a host's handler that chains to
 *      Go's finds a runtime that handles nothing, and zeroes the thread's Go
 *      word (image.c);
 *   5. resets what the shim counts per process (state.c).
 * The memory that Go had mapped stays mapped and unused: nobody knows it any
 * more. Where a check of image.c failed, only 1 and 5 happen, and calls that
 * need Go get -ENOSYS. */
#define _GNU_SOURCE
#include "fork.h"

#include <string.h>

#include "state.h"

static const int go_signals[PHX_GO_SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGPIPE, SIGURG};
/* Not used by Go here (no asynchronous preemption, no Go code that writes to
 * pipes): after a start they are the host's again. */
static bool given_back(int sig) { return sig == SIGPIPE || sig == SIGURG; }

/* Weak for `go test`, which links without --wrap. */
int __real_pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) __attribute__((weak));

/* Linked in place of the call in runtime/cgo. */
int __wrap_pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
  int err = __real_pthread_key_create(key, destructor);
  struct phx_state *s = phx_state();
  if (!err && s) {
    s->fork.key = *key;
    s->fork.keys++;
  }
  return err;
}

static bool ours(const struct phx_fork *f, const struct sigaction *a) {
  return phx_image_holds(&f->image, (const void *)(uintptr_t)a->sa_sigaction);
}

static void forget_key(struct phx_fork *f) {
  if (f->keys > 1) f->image.why = "Go's runtime made more than one pthread key";
  if (f->keys == 0 && phx_image_word(&f->image)) f->image.why = "Go's runtime binds threads without a pthread key";
  if (f->image.why) return;
  if (f->keys) {
    pthread_setspecific(f->key, NULL);
    pthread_key_delete(f->key);
  }
  f->keys = 0;
}

static void host_handlers(struct phx_fork *f, bool started) {
  for (int i = 0; i < PHX_GO_SIGNALS; i++) {
    int sig = go_signals[i];
    struct sigaction now;
    if (f->parked[i]) { /* forked in the middle of a start */
      sigaction(sig, &f->above[i], NULL);
    } else if (!sigaction(sig, NULL, &now) && ours(f, &now)) {
      sigaction(sig, &f->host[i], NULL);
      f->topped[i] = false;
    } else if (started && now.sa_sigaction != f->host[i].sa_sigaction) {
      f->topped[i] = true;
    }
    f->parked[i] = false;
  }
}

static void in_child(void) {
  struct phx_state *s = phx_state();
  struct phx_fork *f = &s->fork;
  atomic_fetch_add(&f->generation, 1);
  if (!f->image.why) forget_key(f);
  if (!f->image.why) {
    host_handlers(f, atomic_load(&s->touched));
    phx_image_restore(&f->image);
  }
  phx_state_forked(s, !f->image.why);
}

void phx_fork_prepare(struct phx_state *s) {
  struct phx_fork *f = &s->fork;
  phx_image_take(&f->image);
  if (!f->watching && pthread_atfork(NULL, NULL, in_child)) f->image.why = "pthread_atfork failed";
  f->watching = true;
}

/* Another thread may fork between any two steps: parked is true before the
 * first change and false after the last. */
void phx_fork_park(struct phx_state *s) {
  struct phx_fork *f = &s->fork;
  for (int i = 0; i < PHX_GO_SIGNALS; i++) {
    sigaction(go_signals[i], NULL, &f->above[i]);
    f->parked[i] = true;
    if (f->topped[i])
      sigaction(go_signals[i], &f->host[i], NULL);
    else
      f->host[i] = f->above[i];
  }
}

void phx_fork_unpark(struct phx_state *s) {
  struct phx_fork *f = &s->fork;
  for (int i = 0; i < PHX_GO_SIGNALS; i++) {
    if (f->topped[i] || given_back(go_signals[i])) sigaction(go_signals[i], &f->above[i], NULL);
    f->parked[i] = false;
  }
}
