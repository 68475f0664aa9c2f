// reap.cc - waits for a child, and takes down what a late one is doing.
#include "stress.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

extern char **environ;

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void capture(pid_t pid) {
  char id[16];
  snprintf(id, sizeof id, "%d", (int)pid);
  char *argv[] = {(char *)"sh", (char *)CAPTURE, id, (char *)config.misses, nullptr};
  pid_t p;
  if (!posix_spawnp(&p, "sh", nullptr, nullptr, argv, environ))
    while (waitpid(p, nullptr, 0) < 0 && errno == EINTR) {
    }
}

// A child that is late is given another 150 s, to see whether it hangs or only
// stood (architecture.md knows a stall of 120 s).
static int reap(pid_t pid, double limit, bool *late) {
  double begun = now();
  for (useconds_t nap = 200;; nap += nap < 3000 ? 200 : 0) {
    int status;
    pid_t r = waitpid(pid, &status, WNOHANG);
    if (r == pid) return status;
    if (r < 0 && errno != EINTR) return -1;
    if (!*late && now() - begun > limit) {
      *late = true;
      capture(pid);
    }
    if (now() - begun > limit + 150) {
      kill(pid, SIGKILL);
      while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
      }
      return -1;
    }
    usleep(nap);
  }
}

bool fork_and_reap(uint64_t number, int depth) {
  pid_t pid = fork();
  if (pid < 0) {
    totals->refused++;
    usleep(10000);
    return true;
  }
  if (pid == 0) child(number, depth);
  totals->forks++;
  bool late = false;
  int status = reap(pid, DEADLINE_S * (DEPTH + 1 - depth), &late);
  if (late && status == -1) totals->misses++;
  else if (late) totals->slow++;
  bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && is_killed(number, depth);
  if (status == 0 || killed) return true;
  if (status != -1 && WIFSIGNALED(status)) totals->crashes++;
  else if (status != -1) totals->wrong++;
  dprintf(STDERR_FILENO, "  child %llu of seed %llu, depth %d, pid %d: %s %d\n", (unsigned long long)number,
          (unsigned long long)config.seed, depth, (int)pid, WIFSIGNALED(status) ? "signal" : "status",
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return false;
}
