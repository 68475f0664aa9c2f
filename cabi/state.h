/* state.h - what the shim knows of this process without any Go.
 *
 * One struct phx_state per process image, in memory of its own (not in the
 * library's data), created by the first call of any kind and never freed.
 * Nothing here needs a lock: every field is either written once before the
 * state is published, or atomic, or owned as its comment says. */
#ifndef PHX_STATE_H
#define PHX_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"
#include "fork.h"
#include "live.h"
#include "rings.h"
#include "signals.h"

/* Values of phx_guard.word. */
enum { PHX_ASLEEP = 0, PHX_STARTING = 1, PHX_AWAKE = 2 };

/* Values of phx_guard.turn. */
enum { PHX_TURN_FREE = 0, PHX_TURN_TAKEN = 1, PHX_TURN_AWAITED = 2 };

#define PHX_STRIPES 64

/* One count of calls inside the library, on a cache line of its own. */
struct phx_stripe {
  _Atomic int64_t inside;
  char pad[64 - sizeof(int64_t)];
};

/* Lives in pages that fork() empties (MADV_WIPEONFORK): in a child, however it
 * was made (fork, _Fork, raw clone), the word is PHX_ASLEEP again, and the
 * parent's other threads do not count as inside. */
struct phx_guard {
  _Atomic uint32_t word; /* does Go run in *this* process? futex word */
  _Atomic uint32_t turn; /* PHX_TURN_*: a thread enters Go for its first time; futex word */
  char pad[64 - 2 * sizeof(uint32_t)];
  struct phx_stripe calls[PHX_STRIPES];
};

struct phx_state {
  struct phx_guard *guard; /* set before publication */
  pthread_key_t inside;    /* each thread's count of its calls inside; set before publication */
  bool counted;            /* inside exists; set before publication */
  /* Go's entry has run in this process or in a forebear: its memory is not
   * fit for another start. Written by: the thread that owns PHX_STARTING. */
  atomic_bool touched;
  _Atomic(struct phx_env *) env;  /* swapped, never freed: readers hold no lock */
  atomic_bool exiting;            /* exit() has begun: new calls are refused */
  _Atomic int32_t async;          /* async batches with I/O queued or running; written by Go */
  atomic_bool armed, armed_pins;  /* exit handler registered; again at the first MAP (exit.h) */
  atomic_int threads;             /* Go's, that threads.c has made in this process */
  _Atomic uintptr_t identity;     /* int (*)(uint64_t addr, uint64_t len, uint64_t *id), 0: none; written by Go */
  struct phx_fork fork;           /* owned by the starter, and by a child's only thread */
  struct phx_signals signals;     /* owned by the starter */
  _Atomic int32_t opens[8];       /* unmatched phxfs_open calls of each device; written by Go */
  struct phx_rings rings;         /* descriptors of rings */
  struct phx_live live;           /* registrations; grown by Go under its own lock */
};

/* The state of this process, made on first use; NULL only when memory is out
 * (errno ENOMEM). Never blocks. Any thread. */
struct phx_state *phx_state(void);

/* Resets what is counted per process, in a forked child with one thread; ready:
 * Go's memory was restored, a call may start it. */
void phx_state_forked(struct phx_state *s, bool ready);

/* One call from outside: what phx_enter filled in and phx_leave undoes. */
struct phx_call {
  struct phx_state *s;
  struct phx_stripe *stripe;
  uintptr_t outer; /* calls inside of the same thread: this one came in a signal handler */
};

/* phx_enter admits a call that needs Go and starts Go if it is the first.
 * name is the public function, for the log. Returns 0, or the errno of the
 * refusal: ESHUTDOWN (exit has begun), ENOSYS (made by _Fork or clone, or a kernel
 * without MADV_WIPEONFORK), ENOMEM (no address space for Go), EAGAIN (no
 * threads for Go); the last two can be retried. Keeps errno. */
int phx_enter(struct phx_call *c, const char *name);

/* phx_enter_plain admits a call that needs no Go: ESHUTDOWN or ENOMEM. */
int phx_enter_plain(struct phx_call *c);

void phx_leave(struct phx_call *c);

/* How many of the calls inside are the calling thread's own: suspended, if it
 * is in a signal handler, and never to end if that handler calls exit. */
long phx_own_calls(struct phx_state *s);

#endif
