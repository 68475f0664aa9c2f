#include "t.h"

#include <dirent.h>
#include <sched.h>

/* poller: counts apart what Go's own poller opens when it first needs it. */
static int each(const char *dir, char **list, int *poller) {
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
    target[k < 0 ? 0 : k] = 0;
    ++*(!strcmp(target, "anon_inode:[eventpoll]") || !strcmp(target, "anon_inode:[eventfd]") ? poller : &n);
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
  while (f && fgets(line, sizeof line, f)) {
    path[0] = 0;
    sscanf(line, "%*s %7s %*s %*s %*s %399[^\n]", perms, path);
    if (path[0] == '/' && !strstr(path, "verdict")) {
      lines = realloc(lines, sizeof *lines * (size_t)(l->named + 1));
      snprintf(line, sizeof line, "%s %s\n", perms, path);
      lines[l->named++] = strdup(line);
    } else {
      l->anonymous++;
    }
  }
  if (f) fclose(f);
  l->map_list = sorted(lines, l->named);
}

void t_leaks_take(t_leaks *l) {
  l->poller = 0;
  l->fds = each("/proc/self/fd", &l->fd_list, &l->poller);
  maps(l);
  l->tasks = t_tasks();
}

static void forget(t_leaks *l) {
  free(l->fd_list);
  free(l->map_list);
}

void t_leaks_check(const char *file, int line, t_leaks *before, int task_slack, int map_slack,
                   const char *input) {
  t_leaks after;
#ifdef __SANITIZE_ADDRESS__
  map_slack += 64; /* its allocator keeps what is freed */
#endif
  T_EVENTUALLY(t_tasks() <= before->tasks + task_slack); /* joined threads go a little later */
  t_leaks_take(&after);
  if (after.fds != before->fds || after.poller > before->poller + 2)
    t_fail(file, line, "open descriptors: got %d want %d, input: %s, now: %.400s", after.fds + after.poller,
           before->fds + before->poller, input, after.fd_list);
  if (after.tasks > before->tasks + task_slack)
    t_fail(file, line, "threads: got %d want at most %d, input: %s", after.tasks,
           before->tasks + task_slack, input);
  if (strcmp(after.map_list, before->map_list)) {
    size_t at = 0;
    while (after.map_list[at] && after.map_list[at] == before->map_list[at]) at++;
    t_fail(file, line, "mappings of files: got %d want %d, input: %s, first other: %.200s",
           after.named, before->named, input, after.map_list + at);
  }
  if (after.anonymous > before->anonymous + map_slack)
    t_fail(file, line, "anonymous mappings: got %d want at most %d, input: %s", after.anonymous,
           before->anonymous + map_slack, input);
  forget(&after);
  forget(before);
}
