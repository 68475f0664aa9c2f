#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bridge.h"
#include "log.h"
#include "settle.h"
#include "start.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* linux/mman.h, kernel 4.14 */
#endif

/* In .data, not .bss: it is set before image.c finds .bss untouched, and a
 * restore puts the same value back. */
static _Atomic(struct phx_state *) the_state __attribute__((section(".data")));

/* Weak for `go test`, which links without --wrap. Not pthread_key_create: that
 * one is taken for Go's (fork.c). */
int __real_pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) __attribute__((weak));

static void *pages(size_t n) {
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

static void report_ignored(struct phx_state *s, const struct phx_env *e) {
  if (*e->bad) phx_log(s, PHX_LOG_ERROR, "call=environment errno=EINVAL reason=\"%s\"", e->bad);
}

/* Reads the environment for this process unless that was done here already (a
 * forked child reads it anew). */
static void refresh_env(struct phx_state *s) {
  struct phx_env *old = atomic_load_explicit(&s->env, memory_order_acquire);
  if (old && old->pid == getpid()) return;
  struct phx_env *e = pages(sizeof *e);
  if (!e) return;
  phx_env_read(e);
  if (atomic_compare_exchange_strong(&s->env, &old, e))
    report_ignored(s, e);
  else
    munmap(e, sizeof *e);
}

static struct phx_state *make_state(void) {
  struct phx_state *s = pages(sizeof *s), *first = NULL;
  if (!s) return NULL;
  s->guard = pages(sizeof *s->guard);
  if (!s->guard) {
    munmap(s, sizeof *s);
    return NULL;
  }
  /* Without it a child could not tell that the runtime it sees is its
   * parent's: such a kernel gets no Go at all. */
  if (madvise(s->guard, sizeof *s->guard, MADV_WIPEONFORK)) atomic_store(&s->touched, true);
  s->counted = __real_pthread_key_create && !__real_pthread_key_create(&s->inside, NULL);
  if (atomic_compare_exchange_strong(&the_state, &first, s)) {
    refresh_env(s);
    return s;
  }
  if (s->counted) pthread_key_delete(s->inside);
  munmap(s->guard, sizeof *s->guard);
  munmap(s, sizeof *s);
  return first;
}

void phx_state_forked(struct phx_state *s, bool ready) {
  struct phx_env *e = atomic_load(&s->env);
  /* Emulators of Linux accept MADV_WIPEONFORK and do nothing (qemu-user 7.2). */
  atomic_store(&s->guard->word, PHX_ASLEEP);
  atomic_store(&s->guard->turn, PHX_TURN_FREE);
  if (e) e->pid = 0; /* a child in a pid namespace of its own can have its parent's pid */
  atomic_store(&s->exiting, false);
  atomic_store(&s->async, 0);
  atomic_store(&s->threads, 0);
  atomic_store(&s->identity, 0);
  if (s->counted) pthread_setspecific(s->inside, NULL);
  phx_live_forked(s);
  phx_rings_forked(s);
  if (ready) atomic_store(&s->touched, false);
}

struct phx_state *phx_state(void) {
  struct phx_state *s = atomic_load_explicit(&the_state, memory_order_acquire);
  if (__builtin_expect(s != NULL, 1)) return s;
  int saved = errno;
  s = make_state();
  if (s) errno = saved;
  return s;
}

/* Counts the call before it looks at exiting, while the exit handler sets
 * exiting before it looks at the counts: one of the two sees the other. The
 * look before that keeps callers that do not stop calling out of the counts:
 * each is counted and refused once at most, and exit does not wait for them.
 * They give way to the calls it does wait for, which need the processor. */
static int admit(struct phx_call *c, struct phx_state *s) {
  if (__builtin_expect(atomic_load(&s->exiting), 0)) {
    sched_yield();
    return ESHUTDOWN;
  }
  uintptr_t t = (uintptr_t)pthread_self();
  c->s = s;
  c->stripe = &s->guard->calls[((t >> 12) * 0x9E3779B97F4A7C15ull) >> 58];
  atomic_fetch_add(&c->stripe->inside, 1);
  c->outer = (uintptr_t)phx_own_calls(s);
  if (s->counted) pthread_setspecific(s->inside, (void *)(c->outer + 1));
  if (__builtin_expect(!atomic_load(&s->exiting), 1)) return 0;
  phx_leave(c);
  return ESHUTDOWN;
}

static int started(struct phx_state *s, const char *name) {
  int saved = errno;
  refresh_env(s);
  int err = phx_start(s);
  if (err)
    phx_log(s, PHX_LOG_ERROR, "call=%s errno=%s reason=\"%s\"", name, phx_errno_name(err),
            phx_start_reason(s, err));
  errno = saved;
  return err;
}

int phx_enter(struct phx_call *c, const char *name) {
  struct phx_state *s = phx_state();
  if (!s) return ENOMEM;
  if (__builtin_expect(atomic_load_explicit(&s->guard->word, memory_order_acquire) != PHX_AWAKE, 0)) {
    if (atomic_load(&s->exiting)) return ESHUTDOWN;
    int err = started(s, name);
    if (err) return err;
  }
  int err = admit(c, s);
  if (__builtin_expect(!err && phx_newcomer(&s->fork.image), 0)) phx_settle(s);
  return err;
}

int phx_enter_plain(struct phx_call *c) {
  struct phx_state *s = phx_state();
  if (!s) return ENOMEM;
  return admit(c, s);
}

void phx_leave(struct phx_call *c) {
  if (c->s->counted) pthread_setspecific(c->s->inside, (void *)c->outer);
  atomic_fetch_sub(&c->stripe->inside, 1);
}

long phx_own_calls(struct phx_state *s) {
  return s->counted ? (long)(uintptr_t)pthread_getspecific(s->inside) : 0;
}

int32_t *phx_async_word(struct phx_state *s) { return (int32_t *)&s->async; }

void phx_set_identity(struct phx_state *s, uintptr_t f) { atomic_store(&s->identity, f); }

int32_t phx_opens(struct phx_state *s, int device) { return atomic_load(&s->opens[device]); }

void phx_set_opens(struct phx_state *s, int device, int32_t opens) {
  atomic_store(&s->opens[device], opens);
}

uint32_t phx_generation(struct phx_state *s) { return atomic_load(&s->fork.generation); }
