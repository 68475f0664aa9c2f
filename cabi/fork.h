/* fork.h - the Go runtime in a forked child: undone, so that the first call
 * there starts a fresh one. */
#ifndef PHX_FORK_H
#define PHX_FORK_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "image.h"

#define PHX_GO_SIGNALS 5 /* SIGSEGV, SIGBUS, SIGFPE, SIGPIPE, SIGURG */

struct phx_fork {
  struct phx_image image;
  bool watching;            /* the atfork handler is registered (in this process or a forebear) */
  _Atomic uint32_t generation; /* forks between the process that loaded the library and this one */

  /* Go's pthread key (runtime/cgo makes one, to learn of ending threads). */
  pthread_key_t key;
  int keys;

  /* Dispositions of the signals for which Go installs handlers. */
  struct sigaction host[PHX_GO_SIGNALS];  /* beneath Go's: Go passes on to them */
  bool topped[PHX_GO_SIGNALS];            /* the host has one on top of Go's, which may chain to Go's */
  struct sigaction above[PHX_GO_SIGNALS]; /* what was there when the start began */
  bool parked[PHX_GO_SIGNALS];            /* the start is not over: above is to be put back */
};

struct phx_state;

/* Makes this process ready to be forked: the snapshot and the atfork handler.
 * Before each run of Go's entry. */
void phx_fork_prepare(struct phx_state *s);

/* Right before and right after Go's entry: handlers that the host installed on
 * top of the parent's Go stay out of Go's sight and come back on top (one that
 * chains to Go's would else be called by Go's, and so on for ever). SIGURG and
 * SIGPIPE stay the host's. */
void phx_fork_park(struct phx_state *s);
void phx_fork_unpark(struct phx_state *s);

#endif
