#include "t.h"

#include <dirent.h>
#include <sched.h>

/* Descriptors that the library keeps, a bounded number of them: Go's poller, rings. */
static bool kept(const char *target) {
  return !strcmp(target, "anon_inode:[eventpoll]") || !strcmp(target, "anon_inode:[eventfd]") ||
         !strcmp(target, "anon_inode:[io_uring]");
}

/* A descriptor that the C library holds for a moment when a thread, such as one
 * of the library's that has just started, first allocates (malloc's arenas): the
 * first of these files, or the other if it could not be opened (RLIMIT_NOFILE). */
static bool passing(const char *target) {
  return !strcmp(target, "/sys/devices/system/cpu/online") || !strcmp(target, "/proc/stat");
}

static int each(const char *dir, char **list, int *pool) {
  DIR *d = opendir(dir);
  int n = 0;
  size_t size = 0;
  FILE *to = list ? open_memstream(list, &size) : NULL;
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.' || (list && atoi(e->d_name) == dirfd(d))) continue;
    if (!to && ++n) continue;
    char path[300], target[256];
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    ssize_t k = readlink(path, target, sizeof target - 1);
    if (k < 0) continue; /* closed meanwhile */
    target[k] = 0;
    if (passing(target)) continue;
    ++*(kept(target) ? pool : &n);
    fprintf(to, "%s -> %s\n", e->d_name, target);
  }
  if (d) closedir(d);
  if (to) fclose(to);
  return n;
}

int t_tasks(void) { return each("/proc/self/task", NULL, NULL); }

long t_rss_kib(void) {
  long kib = -1;
  char line[256];
  FILE *f = fopen("/proc/self/status", "re");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  if (f) fclose(f);
  return kib;
}

char t_task_state(int tid) {
  char path[64], line[512], state = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  FILE *f = fopen(path, "re");
  if (!f) return 0;
  if (fgets(line, sizeof line, f)) {
    char *p = strrchr(line, ')');
    if (p) state = p[2];
  }
  fclose(f);
  return state;
}

bool t_asleep(int tid) {
  for (int i = 0; i < 200; i++) {
    if (t_task_state(tid) != 'S') return false;
    sched_yield();
  }
  return true;
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static char *sorted(char **lines, int n) {
  char *text;
  size_t size;
  FILE *to = open_memstream(&text, &size);
  qsort(lines, (size_t)n, sizeof *lines, compare);
  for (int i = 0; i < n; i++) {
    fputs(lines[i], to);
    free(lines[i]);
  }
  fclose(to);
  free(lines);
  return text;
}

static void maps(t_leaks *l) {
  char line[512], perms[8], path[400];
  char **lines = NULL;
  FILE *f = fopen("/proc/self/maps", "re");
  l->named = l->anonymous = 0;
  l->kib = 0;
  unsigned long from, to;
  while (f && fgets(line, sizeof line, f)) {
    path[0] = 0;
    sscanf(line, "%lx-%lx %7s %*s %*s %*s %399[^\n]", &from, &to, perms, path);
    if (path[0] == '/' && !strstr(path, "verdict")) {
      lines = realloc(lines, sizeof *lines * (size_t)(l->named + 1));
      snprintf(line, sizeof line, "%s %s\n", perms, path);
      lines[l->named++] = strdup(line);
    } else if (!strstr(path, "[io_uring]")) {
      l->anonymous++;
      if (perms[0] == 'r') l->kib += (long)((to - from) >> 10);
    }
  }
  if (f) fclose(f);
  l->map_list = sorted(lines, l->named);
}

void t_leaks_take(t_leaks *l) {
  l->pool = 0;
  l->fds = each("/proc/self/fd", &l->fd_list, &l->pool);
  maps(l);
  l->tasks = t_tasks();
}

/* The lines of now that before has not. */
static char *news(const char *now, const char *before, char *to, size_t size) {
  size_t at = 0;
  *to = 0;
  for (const char *end; (end = strchr(now, '\n')); now = end + 1) {
    char line[512];
    snprintf(line, sizeof line, "%.*s", (int)(end - now + 1), now);
    if (!strstr(before, line) && at < size) at += (size_t)snprintf(to + at, size - at, "%s", line);
  }
  return to;
}

static void forget(t_leaks *l) {
  free(l->fd_list);
  free(l->map_list);
}

/* What one more thread has: a stack and an arena of malloc's, each with a guard. */
#define THREAD_MAPS 4
static long thread_kib(void) {
  size_t stack = 0;
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_getstacksize(&a, &stack);
  pthread_attr_destroy(&a);
  return (long)(stack >> 10) + 512;
}

void t_leaks_check(const char *file, int line, t_leaks *before, int task_slack, int map_slack,
                   long kib, const char *input) {
  t_leaks after;
#ifdef __SANITIZE_ADDRESS__
  map_slack += 64; /* its allocator keeps what is freed */
  kib = LONG_MAX;
#endif
  T_EVENTUALLY(t_tasks() <= before->tasks + task_slack); /* joined threads go a little later */
  t_leaks_take(&after);
  char list[512];
  if (after.fds != before->fds || after.pool > T_POOL_FDS)
    t_fail(file, line, "open descriptors: got %d want %d, input: %s, new: %s", after.fds + after.pool,
           before->fds + before->pool, input, news(after.fd_list, before->fd_list, list, sizeof list));
  if (after.tasks > before->tasks + task_slack)
    t_fail(file, line, "threads: got %d want at most %d, input: %s", after.tasks,
           before->tasks + task_slack, input);
  if (strcmp(after.map_list, before->map_list)) {
    t_fail(file, line, "mappings of files: got %d want %d, input: %s, new: %s", after.named, before->named,
           input, news(after.map_list, before->map_list, list, sizeof list));
  }
  int more = after.tasks > before->tasks ? after.tasks - before->tasks : 0;
  map_slack += more * THREAD_MAPS;
  if (after.anonymous > before->anonymous + map_slack)
    t_fail(file, line, "anonymous mappings: got %d want at most %d, input: %s", after.anonymous,
           before->anonymous + map_slack, input);
  long most = before->kib + more * thread_kib();
  if (kib < LONG_MAX && after.kib > most + kib)
    t_fail(file, line, "anonymous memory: got %ld KiB want at most %ld, input: %s", after.kib, most + kib, input);
  forget(&after);
  forget(before);
}
