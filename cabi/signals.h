/* signals.h - the host's signals with Go in the process: dispositions, masks
 * and stacks stay what the host made them. */
#ifndef PHX_SIGNALS_H
#define PHX_SIGNALS_H

#include <signal.h>

#define PHX_FAULTS 3 /* SIGSEGV, SIGBUS, SIGFPE: Go turns its own into panics */

struct phx_signals {
  struct sigaction go[PHX_FAULTS]; /* Go's handlers; written by the starter, before guard is installed */
};

/* What the host had before Go's entry ran, on the starter's stack. */
struct phx_dispositions {
  void *handler[_NSIG];
  int flags[_NSIG];
};

struct phx_state;

/* Right before Go's entry: keeps Go's threads from taking the host's SIGCHLD,
 * SIGPROF and SIGRTMIN, and notes the dispositions. */
void phx_signals_before(struct phx_state *s, struct phx_dispositions *d);

/* Right after it: puts back what Go changed, and puts a handler in front of
 * Go's that lets Go see the faults of its own code only. */
void phx_signals_after(struct phx_state *s, const struct phx_dispositions *d);

#endif
