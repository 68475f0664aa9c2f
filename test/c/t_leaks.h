/* t_leaks.h - what a call may leave behind in the process. */
#ifndef T_LEAKS_H
#define T_LEAKS_H

#include <stddef.h>

#define T_POOL_FDS 64

typedef struct {
  int fds;        /* open descriptors, but for: */
  int pool;       /* epoll, eventfd and rings: opened when first needed, T_POOL_FDS at most */
  int tasks;      /* threads */
  int named;      /* mappings of files, devices, memfds */
  int anonymous;  /* all other mappings */
  long kib;       /* size of those that can be accessed */
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
 * slack (the Go runtime keeps some of both), mappings also by those of the new
 * threads. Frees before. */
void t_leaks_check(const char *file, int line, t_leaks *before, int task_slack, int map_slack,
                   long kib, const char *input);
/* The same, and anonymous memory (neighbouring mappings become one) has grown by
 * at most kib; the Go heap grows by 4 MiB at a time. Only where no thread is made. */
#define CHECK_NO_GROWTH(before, kib, input) t_leaks_check(__FILE__, __LINE__, before, 4, 16, kib, input)
#define CHECK_NO_LEAKS(before, task_slack, map_slack, input) \
  t_leaks_check(__FILE__, __LINE__, before, task_slack, map_slack, LONG_MAX, input)

#endif
