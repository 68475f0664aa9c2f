/* t_leaks.h - what a call may leave behind in the process. */
#ifndef T_LEAKS_H
#define T_LEAKS_H

#include <stddef.h>

typedef struct {
  int fds;        /* open descriptors, but for: */
  int poller;     /* epoll and eventfd; Go opens one of each, sooner or later */
  int tasks;      /* threads */
  int named;      /* mappings of files, devices, memfds */
  int anonymous;  /* all other mappings */
  char *fd_list;  /* one line a descriptor: number and target */
  char *map_list; /* one line a named mapping: permissions and path */
} t_leaks;

int t_tasks(void);
long t_rss_kib(void);
/* State letter of a thread of this process (proc(5)), 0 when it is gone. */
char t_task_state(int tid);
/* True once the thread has been asleep in the kernel for a good while without
 * a break: it waits for something. */
bool t_asleep(int tid);

void t_leaks_take(t_leaks *l);
/* Fails the case if more is there than in before. Descriptors and named
 * mappings must be the same; threads and anonymous mappings may grow by the
 * slack (the Go runtime keeps some of both). Frees before. */
void t_leaks_check(const char *file, int line, t_leaks *before, int task_slack, int map_slack,
                   const char *input);
#define CHECK_NO_LEAKS(before, task_slack, map_slack, input) \
  t_leaks_check(__FILE__, __LINE__, before, task_slack, map_slack, input)

#endif
