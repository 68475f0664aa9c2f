#include "t.h"

#include "t_count.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MARK 0x50485800L /* no system call has this number: the kernel answers ENOSYS */
#define REFUSED 76       /* exit status of a child that may not be traced */

void t_count_begin(int row) { syscall(MARK, row); }
void t_count_end(void) { syscall(MARK, -1); }

/* One system call of any thread. *row: the row being counted, or -1. */
static void entered(struct t_tally *t, int *row, const struct __ptrace_syscall_info *i) {
  if ((long)i->entry.nr == MARK) {
    if (*row >= 0) t->n[*row]++;
    *row = (int)i->entry.args[0];
    if (*row >= 0 && t->n[*row] >= T_COUNT_CALLS) *row = -1;
    return;
  }
  if (*row < 0) return;
  struct t_calls *c = &t->call[*row][t->n[*row]];
  switch (i->entry.nr) {
  case SYS_pread64: case SYS_pwrite64: case SYS_io_uring_enter: case SYS_io_submit: case SYS_io_getevents: c->io++; break;
  case SYS_futex: c->wakes += (i->entry.args[1] & FUTEX_CMD_MASK) == FUTEX_WAKE; break;
  case SYS_nanosleep: case SYS_clock_nanosleep: break;
  default: c->other++;
  }
}

/* Runs the child and its threads to their end; the child's wait status. */
static int trace(pid_t child, struct t_tally *t) {
  int row = -1, status;
  for (;;) {
    pid_t pid = waitpid(-1, &status, __WALL);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return -1;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (pid == child) return status;
      continue;
    }
    int sig = WSTOPSIG(status);
    if (sig == (SIGTRAP | 0x80)) {
      struct __ptrace_syscall_info i;
      if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof i, &i) > 0 && i.op == PTRACE_SYSCALL_INFO_ENTRY) entered(t, &row, &i);
      sig = 0;
    } else if (sig == SIGTRAP || sig == SIGSTOP) {
      sig = 0; /* a new thread, or the message about it */
    }
    ptrace(PTRACE_SYSCALL, pid, 0, (long)sig);
  }
}

bool t_count(void (*f)(void *), void *arg, struct t_tally *t, int *refused) {
  int status;
  memset(t, 0, sizeof *t);
  *refused = 0;
  fflush(NULL);
  pid_t child = fork(); /* dies with the tracer */
  if (child < 0) {
    t_fail(__FILE__, __LINE__, "fork: %s", t_errno(errno));
    return false;
  }
  if (!child) {
    if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(REFUSED);
    raise(SIGSTOP);
    f(arg);
    _exit(0);
  }
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
    *refused = EPERM;
    return false;
  }
  if (ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)) *refused = errno;
  struct __ptrace_syscall_info i; /* Linux 5.3 */
  if (!*refused && ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof i, &i) < 0) *refused = errno;
  if (*refused) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return false;
  }
  ptrace(PTRACE_SYSCALL, child, 0, 0);
  status = trace(child, t);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    *refused = 77;
    return false;
  }
  t_fail(__FILE__, __LINE__, "the traced child: wait status 0x%x", status);
  return false;
}

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static int low(const struct t_tally *t, int row, size_t member) {
  int v[T_COUNT_CALLS], n = t->n[row];
  for (int i = 0; i < n; i++) v[i] = *(const int *)((const char *)&t->call[row][i] + member);
  if (n) qsort(v, (size_t)n, sizeof *v, by_value);
  return n ? v[n / 10] : -1;
}

struct t_calls t_count_low(const struct t_tally *t, int row) {
  return (struct t_calls){low(t, row, offsetof(struct t_calls, io)), low(t, row, offsetof(struct t_calls, wakes)),
                          low(t, row, offsetof(struct t_calls, other))};
}
