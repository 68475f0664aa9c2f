/* t_child.h - child processes of a case. Their checks count for the case. */
#ifndef T_CHILD_H
#define T_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* Forks; the child runs f(arg) and then calls exit(0). Its own time limit is
 * shorter than the case's, so a hang in it is reported with its place. */
pid_t t_fork(void (*f)(void *), void *arg);

/* Runs this program again with the entry point of that name from the table
 * given to t_main; main() returns after it. env is a NULL-ended list, applied
 * before exec: "K=V" sets, "K" removes. out, err: descriptors for its stdout
 * and stderr, -1 for ours. */
pid_t t_spawn(const char *entry, const char *const *env, int out, int err);
bool t_is_child(void); /* was this process made by t_spawn? */

/* Waits; the wait status. */
int t_wait(pid_t pid);
/* Fails the case unless the status is an exit with code want. */
void t_check_status(const char *file, int line, int status, int want, const char *input);
#define CHECK_EXIT(pid, want, input) t_check_status(__FILE__, __LINE__, t_wait(pid), want, input)

/* Spawns, waits, checks for exit status 0. */
void t_run_child(const char *file, int line, const char *entry, const char *const *env);
#define RUN_CHILD(entry, ...) \
  t_run_child(__FILE__, __LINE__, entry, (const char *const[]){__VA_ARGS__, NULL})

void t_kill_children(void); /* async-signal-safe; the harness's own */

#endif
