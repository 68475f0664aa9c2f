/* settle.c - a thread enters Go for its first time.
 *
 * Go gives each thread of the host an M of its own, and makes a new one when
 * the list of them is empty. Those who find it empty spin (runtime.lockextra:
 * sched_yield, usleep(1)) until the one that makes the next gets to run: two
 * thousand first calls at once took 10 to 40 s on two cores. Therefore they
 * take turns, and sleep meanwhile: 0.2 s.
 *
 * The turn is a futex word in the pages that fork() empties, so a child never
 * finds it taken, and no lock is held across fork. Its holder runs with all
 * signals blocked: no handler that calls the library can stand in its way. */
#define _GNU_SOURCE
#include "settle.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "state.h"

#ifdef PHX_NO_IMAGE
_Thread_local bool phx_settled;
#endif

static void take_turn(_Atomic uint32_t *turn) {
  uint32_t free = PHX_TURN_FREE;
  if (atomic_compare_exchange_strong(turn, &free, PHX_TURN_TAKEN)) return;
  while (atomic_exchange(turn, PHX_TURN_AWAITED) != PHX_TURN_FREE)
    syscall(SYS_futex, turn, FUTEX_WAIT_PRIVATE, PHX_TURN_AWAITED, NULL, NULL, 0);
}

static void end_turn(_Atomic uint32_t *turn) {
  if (atomic_exchange(turn, PHX_TURN_FREE) == PHX_TURN_AWAITED)
    syscall(SYS_futex, turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void phx_settle(struct phx_state *s) {
  sigset_t all, mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  take_turn(&s->guard->turn);
  go_settle();
#ifdef PHX_NO_IMAGE
  phx_settled = true;
#endif
  end_turn(&s->guard->turn);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
}
