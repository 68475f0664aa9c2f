/* signals.c - what Go does to the signals of its process, undone.
 *
 * Relied on (runtime/signal_unix.go, sigtab_linux_generic.go, proc.go of the
 * pinned toolchain; test/c/signals_*.c fail when it changes):
 *  - in a c-shared library Go installs handlers for SIGSEGV, SIGBUS, SIGFPE,
 *    SIGPIPE and SIGURG, and adds SA_ONSTACK to every other handler it finds;
 *  - each thread that enters Go, and each of Go's own, unblocks the signals
 *    that runtime.sigtable flags _SigUnblock, and leaves them so;
 *  - Go's handler ends the process with status 2 where nobody handles a fault.
 *
 * A host that waits for SIGCHLD, SIGPROF or SIGRTMIN with sigwait or a
 * signalfd blocks them everywhere; a thread of Go's that does not would take
 * them away. Hence the table is changed, before Go reads it. */
#define _GNU_SOURCE
#include "signals.h"

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "state.h"

static const int faults[PHX_FAULTS] = {SIGSEGV, SIGBUS, SIGFPE}; /* as in fork.host */

/* ---- runtime.sigtable ---- */

struct go_signal { /* runtime.sigTabT */
  int32_t flags;
  const char *name;
  int64_t len;
};

enum { GO_PANIC = 8, GO_UNBLOCK = 128, GO_RTMIN = 34 };

static bool is_table(const struct phx_image *m, const struct go_signal *t) {
  static const char first[] = "SIGNONE: no trap";
  int64_t n = sizeof first - 1;
  return t->flags == 0 && t->len == n && phx_image_holds(m, t->name) && !memcmp(t->name, first, (size_t)n) &&
         t[SIGBUS].flags == GO_PANIC + GO_UNBLOCK && t[GO_RTMIN].flags & GO_UNBLOCK;
}

static void tame_table(const struct phx_image *m) {
  char *p = (char *)(((uintptr_t)m->rw_lo + 7) & ~(uintptr_t)7);
  for (; m->rw_lo && p + _NSIG * sizeof(struct go_signal) <= m->data_hi; p += 8) {
    struct go_signal *t = (struct go_signal *)p;
    if (!is_table(m, t)) continue;
    t[SIGCHLD].flags &= ~GO_UNBLOCK;
    t[SIGPROF].flags &= ~GO_UNBLOCK;
    t[GO_RTMIN].flags &= ~GO_UNBLOCK;
    return;
  }
}

/* ---- faults ---- */

static bool in_library(const struct phx_state *s, void *context) {
  mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
#if defined(__x86_64__)
  return phx_image_holds(&s->fork.image, (void *)m->gregs[REG_RIP]);
#else
  return phx_image_holds(&s->fork.image, (void *)m->pc);
#endif
}

/* What the host's disposition would have done. */
static void to_host(const struct sigaction *h, int sig, siginfo_t *info, void *context) {
  static const struct sigaction dfl = {.sa_handler = SIG_DFL};
  bool sent = info->si_code <= 0; /* by kill and its kind: it will not happen again by itself */
  if (h->sa_handler == SIG_IGN && sent) return;
  if (h->sa_handler == SIG_DFL || h->sa_handler == SIG_IGN) {
    sigaction(sig, &dfl, NULL); /* the fault repeats where it happened, and ends the process there */
    if (sent) syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), sig, info);
    return;
  }
  if (h->sa_flags & SA_RESETHAND) sigaction(sig, &dfl, NULL);
  if (h->sa_flags & SA_SIGINFO)
    h->sa_sigaction(sig, info, context);
  else
    h->sa_handler(sig);
}

/* Stands in front of Go's handler with the host's mask and flags. */
static void guard(int sig, siginfo_t *info, void *context) {
  struct phx_state *s = phx_state();
  int i = sig == SIGSEGV ? 0 : sig == SIGBUS ? 1 : 2;
  if (info->si_code <= 0 || !in_library(s, context)) {
    to_host(&s->fork.host[i], sig, info, context);
    return;
  }
  sigset_t all; /* as Go asked for; the return from this handler undoes it */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  s->signals.go[i].sa_sigaction(sig, info, context);
}

static void put_guard(struct phx_state *s, int i) {
  const struct sigaction *host = &s->fork.host[i];
  struct sigaction now, g = {.sa_sigaction = guard, .sa_mask = host->sa_mask,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | (host->sa_flags & (SA_NODEFER | SA_RESTART))};
  if (sigaction(faults[i], NULL, &now) || !phx_image_holds(&s->fork.image, (void *)(uintptr_t)now.sa_sigaction)) return;
  s->signals.go[i] = now;
  sigaction(faults[i], &g, NULL);
}

/* ---- around the start ---- */

void phx_signals_before(struct phx_state *s, struct phx_dispositions *d) {
  tame_table(&s->fork.image);
  for (int sig = 1; sig < _NSIG; sig++) {
    struct sigaction a;
    d->handler[sig] = NULL; /* SIG_DFL, and what may not be asked for */
    if (sigaction(sig, NULL, &a)) continue;
    d->handler[sig] = (void *)(uintptr_t)a.sa_sigaction;
    d->flags[sig] = a.sa_flags;
  }
}

void phx_signals_after(struct phx_state *s, const struct phx_dispositions *d) {
  for (int i = 0; i < PHX_FAULTS; i++) put_guard(s, i);
  for (int sig = 1; sig < _NSIG; sig++) {
    struct sigaction a;
    if (!d->handler[sig] || sigaction(sig, NULL, &a) || (void *)(uintptr_t)a.sa_sigaction != d->handler[sig]) continue;
    if (a.sa_flags != (d->flags[sig] | SA_ONSTACK) || a.sa_flags == d->flags[sig]) continue;
    a.sa_flags = d->flags[sig];
    sigaction(sig, &a, NULL);
  }
}
