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
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "state.h"
#include "threads.h"

#define PATIENCE_NS (10LL * 1000000000)
#define PATIENCE_OVER EBUSY /* runtime/cgo prints it and aborts; after EAGAIN it would ask 20 times */

/* Weak for `go test`, which links without --wrap. */
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) __attribute__((weak));

/* What a thread of Go's begins with. */
struct entry {
  struct phx_state *s;
  void *(*f)(void *);
  void *arg;
};

static void *enter(void *p) {
  struct entry e = *(struct entry *)p;
  free(p);
  void *r = e.f(e.arg);
  atomic_fetch_sub(&e.s->threads, 1);
  return r;
}

/* Linked in place of the call in runtime/cgo. */
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg) {
  struct phx_state *s = phx_state(); /* Go was started: there is one */
  bool told = false;
  long nap = 1000000;
  struct entry *e = malloc(sizeof *e);
  if (!e) return ENOMEM;
  *e = (struct entry){s, f, arg};
  atomic_fetch_add(&s->threads, 1);
  for (long long waited = 0;; waited += nap, nap = nap < 20000000 ? 2 * nap : nap) {
    int err = __real_pthread_create(t, a, enter, e);
    if (!err) return 0;
    if (err != EAGAIN || waited >= PATIENCE_NS) {
      free(e);
      atomic_fetch_sub(&s->threads, 1);
      return err == EAGAIN ? PATIENCE_OVER : err;
    }
    if (!told)
      phx_log(s, PHX_LOG_ERROR, "call=thread errno=EAGAIN reason=\"no thread can be created (pids.max, RLIMIT_NPROC): waiting for room\"");
    told = true;
    nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
  }
}

/* All threads of phx_thread_room stand here until the last one is made. */
static void *stand(void *gate) {
  while (!__atomic_load_n((int *)gate, __ATOMIC_ACQUIRE))
    syscall(SYS_futex, gate, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  return NULL;
}

static int make_room(int want) {
  pthread_t t[PHX_ROOM_MAX];
  int n = 0, err = 0, gate = 0;
  sigset_t all, mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask); /* the host's signals go to the host's threads */
  while (n < want && n < PHX_ROOM_MAX && !(err = __real_pthread_create(&t[n], NULL, stand, &gate))) n++;
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &gate, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
  while (n > 0) pthread_join(t[--n], NULL);
  return err ? EAGAIN : 0;
}

/* Threads that were joined a moment ago count until the kernel is done with them. */
int phx_thread_room(int n) {
  for (long nap = 1000000;; nap *= 2) {
    int err = make_room(n);
    if (!err || nap > 8000000) return err;
    nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
  }
}
