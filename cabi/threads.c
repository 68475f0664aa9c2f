/* threads.c - the threads that Go wants later than at its start.
 *
 * Go ends the process when a thread cannot be created, after some 200 ms of
 * tries. A limit (pids.max, RLIMIT_NPROC) that a host reaches for a moment is no
 * reason to die: Go has some idle threads (PHX_SPARE_THREADS), and where it
 * wants one more than those, the thread that asks waits until there is room.
 * Not for ever: the work that the new thread was to do may be what every caller
 * waits for, and a process that ends is better than one that hangs.
 * Relied on: runtime/cgo makes its threads with pthread_create, and no lock of
 * the runtime's is held meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "log.h"
#include "state.h"

#define PATIENCE_NS (10LL * 1000000000)
#define PATIENCE_OVER EBUSY /* runtime/cgo prints it and aborts; after EAGAIN it would ask 20 times */

/* Weak for `go test`, which links without --wrap. */
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) __attribute__((weak));

/* Linked in place of the call in runtime/cgo. */
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg) {
  struct phx_state *s = phx_state();
  bool told = false;
  long nap = 1000000;
  for (long long waited = 0;; waited += nap, nap = nap < 20000000 ? 2 * nap : nap) {
    int err = __real_pthread_create(t, a, f, arg);
    if (err != EAGAIN) return err;
    if (waited >= PATIENCE_NS) return PATIENCE_OVER;
    if (s && !told)
      phx_log(s, PHX_LOG_ERROR, "call=thread errno=EAGAIN reason=\"no thread can be created (pids.max, RLIMIT_NPROC): waiting for room\"");
    told = true;
    nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
  }
}
