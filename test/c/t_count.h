/* t_count.h - counts the system calls that a child process makes, all its
 * threads included, between two marks. The counter is a tracer (ptrace): it
 * sees every call, also those that do not go through libc. */
#ifndef T_COUNT_H
#define T_COUNT_H

#include <stdbool.h>

enum { T_COUNT_ROWS = 16, T_COUNT_CALLS = 60 };

/* System calls of one measured call. Not counted: futex waits, because whoever
 * is woken sleeps again some time later, and the sleeps of Go's monitor thread. */
struct t_calls {
  int io;    /* pread64, pwrite64, io_uring_enter, io_submit, io_getevents */
  int wakes; /* futex wakes */
  int other; /* everything else */
};

struct t_tally {
  int n[T_COUNT_ROWS]; /* measured calls of each row */
  struct t_calls call[T_COUNT_ROWS][T_COUNT_CALLS];
};

/* In the child: what follows belongs to a row, up to t_count_end. */
void t_count_begin(int row);
void t_count_end(void);

/* Forks, runs f in the child, fills t. false: the case has failed, or *refused is
 * the errno where a process may not be traced, or 77 if the child exited so. */
bool t_count(void (*f)(void *), void *arg, struct t_tally *t, int *refused);

/* Of each kind the lowest tenth over a row's calls: a busy machine adds wakes
 * and sleeps of Go's scheduler to some calls, a regression adds to all. */
struct t_calls t_count_low(const struct t_tally *t, int row);

#endif
