/* t.h - the harness of the C behaviour tests.
 *
 * A program is a table of cases; each case is one story and prints one line:
 *   ok NAME | FAIL NAME: file:line: what, got .. want .., input | skip NAME: what is missing
 * Further failed checks of the same case follow as lines that begin with "  also".
 * Exit status: 0 pass, 1 a case failed, 77 every case was skipped.
 *
 * Checks may run on any thread and in any child made with t_fork or t_spawn:
 * the verdict of the running case lies in shared memory. A CHECK_ goes on after
 * a failure, a NEED leaves the function it stands in.
 * A case that takes longer than T_CASE_SECONDS is "hung": the children it
 * started are killed and the program ends. No other deadline is shorter than 20 s. */
#ifndef T_H
#define T_H

#include <phoenix.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef T_CASE_SECONDS
#define T_CASE_SECONDS 60 /* then the case is hung; a child of it earlier */
#endif
#ifndef T_WAIT_SECONDS
#define T_WAIT_SECONDS 20 /* longest wait for one event inside a case */
#endif
#define T_CHILD_SECONDS (T_CASE_SECONDS * 3 / 4)
#define T_PAGE ((size_t)65536) /* alignment of registrations */

typedef struct {
  const char *name;
  void (*run)(void);
} t_case;

/* children: entry points for t_spawn, ended by {0}; NULL: none. */
int t_main(int argc, char **argv, const t_case *cases, size_t n, const t_case *children);
#define T_CASE(f) {#f, f}
#define T_RUN(argc, argv, cases, children) \
  t_main(argc, argv, cases, sizeof cases / sizeof *cases, children)

/* The embedded host device; the emulated one, if run.py --emulate chose that. */
static inline void t_use_host(void) {
  if (!getenv("T_EMULATED")) setenv("PHXFS_VENDOR", "HOST", 1);
}
/* A case that is about the host device, or about memory that a device does not have. */
#define HOST_ONLY(why)                                                  \
  do {                                                                  \
    if (t_emulated()) T_SKIP(NULL, "the host device only: %s", why);      \
  } while (0)

/* Registered memory is reached through host staging (run.py --env PHXFS_MODE=host_staging). */
static inline bool t_staged(void) {
  const char *mode = getenv("PHXFS_MODE");
  return mode && !strcmp(mode, "host_staging");
}
/* What a transfer gives that starts at the beginning of registered memory of which the page at
 * hole cannot be touched: in staging a piece of 1 MiB is copied or not. */
static inline ssize_t t_before_hole(size_t hole) {
  size_t n = t_staged() ? hole >> 20 << 20 : hole;
  return n ? (ssize_t)n : -EFAULT;
}

/* ---- verdicts ---- */
#define T_PRINTF(f, a) __attribute__((format(printf, f, a)))
void t_fail(const char *file, int line, const char *format, ...) T_PRINTF(3, 4);
void t_false(const char *file, int line, const char *condition, const char *input, ...) T_PRINTF(4, 5);
/* need: the word in PHX_REQUIRE (gpu, io_uring, seccomp, odirect, userfaultfd, ...; or all)
 * that turns this skip into a failure. NULL: the case makes no sense here, nothing is missing. */
void t_skip(const char *file, int line, const char *need, const char *format, ...) T_PRINTF(4, 5);
bool t_failed(void);
bool t_skipped(void);
const char *t_errno(int e); /* "EFAULT (14)" */
bool t_int(const char *file, int line, const char *what, long long got, long long want,
           int got_errno, int want_errno, const char *input, ...) T_PRINTF(8, 9);

#define T_SKIP(need, ...)                         \
  do {                                            \
    t_skip(__FILE__, __LINE__, need, __VA_ARGS__); \
    return;                                       \
  } while (0)
/* A build with AddressSanitizer is not measured (cabi/image.c): it is not reset
 * in children, and Go's ways with threads and signals stay as they are. */
#ifdef __SANITIZE_ADDRESS__
#define NOT_ASAN() T_SKIP(NULL, "a build without AddressSanitizer")
#else
#define NOT_ASAN() (void)0
#endif
#define CHECK(cond, ...)                                                         \
  do {                                                                           \
    if (!(cond)) t_false(__FILE__, __LINE__, #cond, __VA_ARGS__);                  \
  } while (0)
#define NEED(cond, ...)                                               \
  do {                                                                \
    if (!(cond)) {                                                    \
      t_false(__FILE__, __LINE__, #cond, __VA_ARGS__);                 \
      return;                                                         \
    }                                                                 \
  } while (0)
/* The trailing arguments are a format and its values: the input. */
#define CHECK_EQ(expr, want, ...)                                                        \
  ((void)t_int(__FILE__, __LINE__, #expr, (long long)(expr), (long long)(want), -1, -1, \
               __VA_ARGS__))

/* A successful call leaves errno as it found it: both macros below see to it. */
#define T_ERRNO_MARK 7777
#define CHECK_OK(call, want, ...)                                                             \
  do {                                                                                        \
    errno = T_ERRNO_MARK;                                                                     \
    long long t_got = (long long)(call);                                                      \
    t_int(__FILE__, __LINE__, #call, t_got, (long long)(want), errno, T_ERRNO_MARK, __VA_ARGS__); \
  } while (0)
#define CHECK_ERR(call, want, eno, ...)                                                \
  do {                                                                                 \
    errno = 0;                                                                         \
    long long t_got = (long long)(call);                                               \
    t_int(__FILE__, __LINE__, #call, t_got, (long long)(want), errno, eno, __VA_ARGS__); \
  } while (0)
#define CHECK_NULL(call, eno, ...)                                              \
  do {                                                                          \
    errno = 0;                                                                  \
    long long t_got = (long long)(intptr_t)(call);                              \
    t_int(__FILE__, __LINE__, #call, t_got, 0LL, errno, eno, __VA_ARGS__);      \
  } while (0)

/* Repeats cond, without a pause in it, until it is true or T_WAIT_SECONDS have
 * passed; the value is the last of cond. For states that another thread reaches. */
double t_now(void); /* seconds, monotonic */
#define T_EVENTUALLY(cond)                                             \
  __extension__({                                                      \
    double t_end = t_now() + T_WAIT_SECONDS;                           \
    bool t_yes;                                                        \
    while (!(t_yes = (cond)) && t_now() < t_end) sched_yield();        \
    t_yes;                                                             \
  })

#include "t_child.h"
#include "t_data.h"
#include "t_leaks.h"
#include "t_target.h"

#endif
