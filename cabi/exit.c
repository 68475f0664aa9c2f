#define _GNU_SOURCE
#include "exit.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bridge.h"
#include "log.h"
#include "state.h"

/* docs/abi.md: exit waits at most this long, in all. If it was called in a
 * signal handler that has interrupted a call, that call never ends, and batches
 * may wait for what it has begun: then less. */
#define EXIT_SECONDS 30.0
#define EXIT_INTERRUPTED_SECONDS 5.0

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long inside(struct phx_state *s) {
  long n = 0;
  for (int i = 0; i < PHX_STRIPES; i++) n += atomic_load(&s->guard->calls[i].inside);
  return n;
}

static bool busy(struct phx_state *s, long own) { return atomic_load(&s->async) > 0 || inside(s) > own; }

static double patience(long own) {
#ifdef PHX_INJECT /* the tests' own patience */
  const char *ms = getenv("PHX_EXIT_MS");
  if (ms) return atof(ms) / 1000;
#endif
  return own ? EXIT_INTERRUPTED_SECONDS : EXIT_SECONDS;
}

/* Refuses new calls, lets accepted async batches and calls inside finish
 * (Go's threads go on running while exit handlers run), then releases pins. */
static void at_exit(void) {
  struct phx_state *s = phx_state();
  if (!s || atomic_load(&s->guard->word) != PHX_AWAKE) return; /* a forked child: its parent's work */
  if (atomic_exchange(&s->exiting, true)) return;
  long own = phx_own_calls(s);
  double limit = patience(own), end = now() + limit;
  for (long nap = 20000; busy(s, own) && now() < end; nap = nap < 2000000 ? nap * 2 : nap)
    nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
  if (busy(s, own))
    phx_log(s, PHX_LOG_ERROR, "call=exit errno=ETIMEDOUT reason=\"after %g s %d async batches and %ld calls are unfinished\"",
            limit, atomic_load(&s->async), inside(s));
  phx_live_release(s);
}

/* A forked child inherits what its parent registered, and must not register
 * again: glibc does not protect the lock of that list across fork, so that a
 * child of a process in which another thread was in dlclose would wait for ever
 * (seen with 2.36). Nor does it for its pins, unless its vendor's library is there
 * (core.Ledger): one that was loaded in the child has gone through that lock.
 * The flag is set last: a fork in between registers twice. */
static void arm(atomic_bool *armed) {
  if (!atomic_load(armed) && !atexit(at_exit)) atomic_store(armed, true);
}

void phx_exit_arm(void) { arm(&phx_state()->armed); }

void phx_exit_arm_pins(void) { arm(&phx_state()->armed_pins); }
