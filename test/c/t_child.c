#include "t.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
void t_watch(const char *name, unsigned seconds); /* t.c */

#define CHILDREN 256
static _Atomic pid_t running[CHILDREN]; /* killed when the case ends or hangs */

static void remember(pid_t pid) {
  for (int i = 0; i < CHILDREN; i++) {
    pid_t none = 0;
    if (atomic_compare_exchange_strong(&running[i], &none, pid)) return;
  }
}

void t_kill_children(void) {
  for (int i = 0; i < CHILDREN; i++) {
    pid_t pid = atomic_exchange(&running[i], 0);
    if (pid > 0) kill(pid, SIGKILL);
  }
}

struct job {
  void (*f)(void *);
  void *arg;
};

static pid_t fork_here(const struct job *j) {
  pid_t pid = fork();
  if (pid < 0) {
    t_fail(__FILE__, __LINE__, "fork: %s", t_errno(errno));
    return -1;
  }
  if (pid > 0) {
    remember(pid);
    return pid;
  }
  for (int i = 0; i < CHILDREN; i++) atomic_store(&running[i], 0); /* the parent's */
  t_watch("(a forked child)", T_CHILD_SECONDS);
  j->f(j->arg);
  exit(0);
}

static void *fork_there(void *job) { return (void *)(long)fork_here(job); }

/* T_FORK_THERE=1: from a thread made for it. qemu-user 7.2 aborts when a child
 * makes a thread, unless the newest thread of the parent has forked it. */
pid_t t_fork(void (*f)(void *), void *arg) {
  struct job j = {f, arg};
  pthread_t t;
  void *pid;
  fflush(NULL);
  if (!getenv("T_FORK_THERE")) return fork_here(&j);
  if (pthread_create(&t, NULL, fork_there, &j) || pthread_join(t, &pid)) return -1;
  return (pid_t)(long)pid;
}

bool t_is_child(void) { return getenv("T_CHILD") != NULL; }

static char **environment(const char *entry, const char *const *env) {
  size_t n = 0, k = 0;
  while (environ[n]) n++;
  while (env && env[k]) k++;
  char **all = calloc(n + k + 3, sizeof *all), *mark = NULL;
  size_t out = 0;
  if (asprintf(&mark, "T_CHILD=%s", entry) < 0) abort();
  all[out++] = mark;
  for (size_t i = 0; i < k; i++)
    if (strchr(env[i], '=')) all[out++] = (char *)env[i];
  for (size_t i = 0; i < n; i++) {
    size_t name = strcspn(environ[i], "=");
    bool dropped = !strncmp(environ[i], "T_CHILD=", 8);
    for (size_t j = 0; j < k && !dropped; j++)
      dropped = strcspn(env[j], "=") == name && !strncmp(env[j], environ[i], name);
    if (!dropped) all[out++] = environ[i];
  }
  return all;
}

/* T_EMULATOR: the program that runs this one, and that an emulated execve of it
 * would not start. */
pid_t t_spawn(const char *entry, const char *const *env, int out, int err) {
  pid_t pid = -1;
  posix_spawn_file_actions_t acts;
  posix_spawn_file_actions_init(&acts);
  if (out >= 0) posix_spawn_file_actions_adddup2(&acts, out, STDOUT_FILENO);
  if (err >= 0) posix_spawn_file_actions_adddup2(&acts, err, STDERR_FILENO);
  char **all = environment(entry, env);
  char *argv[] = {"child", NULL}, *emulated[] = {getenv("T_EMULATOR"), "/proc/self/exe", NULL};
  char self[PATH_MAX];
  if (emulated[0] && realpath("/proc/self/exe", self)) emulated[1] = self;
  int rc = posix_spawn(&pid, emulated[0] ? emulated[0] : "/proc/self/exe", &acts, NULL, emulated[0] ? emulated : argv, all);
  posix_spawn_file_actions_destroy(&acts);
  free(all[0]);
  free(all);
  if (rc) {
    t_fail(__FILE__, __LINE__, "posix_spawn of %s: %s", entry, t_errno(rc));
    return -1;
  }
  remember(pid);
  return pid;
}

int t_wait(pid_t pid) {
  int status = -1;
  if (pid <= 0) return -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  for (int i = 0; i < CHILDREN; i++) {
    pid_t it = pid;
    if (atomic_compare_exchange_strong(&running[i], &it, 0)) break;
  }
  return status;
}

void t_check_status(const char *file, int line, int status, int want, const char *input) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == want) return;
  if (WIFSIGNALED(status))
    t_fail(file, line, "child: killed by signal %d, want exit %d, input: %s", WTERMSIG(status), want,
           input);
  else
    t_fail(file, line, "child: got exit %d want %d, input: %s", WEXITSTATUS(status), want, input);
}

void t_run_child(const char *file, int line, const char *entry, const char *const *env) {
  t_check_status(file, line, t_wait(t_spawn(entry, env, -1, -1)), 0, entry);
}
