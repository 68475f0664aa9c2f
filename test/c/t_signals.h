/* t_signals.h - real signals, and a handler that says what came. */
#ifndef T_SIGNALS_H
#define T_SIGNALS_H

#include "t.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

/* What the handler saw last; one signal at a time. */
static volatile sig_atomic_t t_seen, t_code;
static void *volatile t_addr;
static void *volatile t_sp; /* a place on the stack it ran on */
static pid_t volatile t_tid;
static __attribute__((unused)) sigjmp_buf t_back;
static volatile sig_atomic_t t_jump; /* leave the handler by siglongjmp */

static inline void t_note(int sig, siginfo_t *info, void *context) {
  (void)context;
  int here;
  t_seen = sig, t_code = info->si_code, t_addr = info->si_addr, t_sp = &here, t_tid = gettid();
  if (t_jump) siglongjmp(t_back, 1);
}

/* Causes sig as the kernel does. */
static char *t_hole; /* two pages of a file of length 0 */
static inline void t_signals_setup(void) {
  int fd = memfd_create("hole", MFD_CLOEXEC);
  t_hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
}

static inline void t_cause(int sig) {
  switch (sig) {
  case SIGSEGV: *(volatile char *)16 = 1; break;
  case SIGBUS: t_hole[4097] = 1; break;
#if defined(__x86_64__) /* elsewhere a division by zero is no fault */
  case SIGFPE: {
    volatile int zero = 0, many = 100;
    many = many / zero;
    break;
  }
#endif
  case SIGPIPE: {
    int p[2];
    if (pipe(p)) return;
    close(p[0]);
    if (write(p[1], "x", 1) >= 0) return;
    close(p[1]);
    break;
  }
  case SIGPROF:
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_usec = 1000}}, NULL);
    T_EVENTUALLY(t_seen == SIGPROF);
    break;
  case SIGCHLD: {
    pid_t pid = fork();
    if (pid == 0) _exit(0);
    waitpid(pid, NULL, 0);
    T_EVENTUALLY(t_seen == SIGCHLD);
    break;
  }
  default: syscall(SYS_tgkill, getpid(), gettid(), sig);
  }
}

static inline bool t_synchronous(int sig) { return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE; }

static inline const char *t_signame(int sig) { return sig == SIGRTMIN ? "RTMIN" : sigabbrev_np(sig); }

#endif
