/* t.c - runs the cases, keeps the verdict of the running one, watches the clock. */
#include "t.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>

#define REASONS 12

/* Shared with every child of the program (a memfd, inherited). */
struct verdict {
  atomic_int lock;
  int failures, skips;
  char reason[REASONS][768]; /* reason[0] of a skip: why */
};

static struct verdict *now_running;
static int verdict_fd = -1;
static char hung_line[256]; /* written before alarm(), read by the handler */

double t_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void lock(void) {
  while (atomic_exchange(&now_running->lock, 1)) sched_yield();
}
static void unlock(void) { atomic_store(&now_running->lock, 0); }

const char *t_errno(int e) {
  static _Thread_local char text[2][48];
  static _Thread_local int turn;
  char *to = text[turn ^= 1];
  const char *name = strerrorname_np(e);
  snprintf(to, sizeof text[0], "%s (%d)", e == T_ERRNO_MARK ? "untouched" : name ? name : "?", e);
  return to;
}

static void put(const char *file, int line, const char *format, va_list ap) {
  int saved = errno;
  const char *slash = strrchr(file, '/');
  lock();
  int i = now_running->failures++;
  if (i < REASONS) {
    char *to = now_running->reason[i];
    size_t size = sizeof now_running->reason[0];
    int n = snprintf(to, size, "%s:%d: ", slash ? slash + 1 : file, line);
    vsnprintf(to + n, size - (size_t)n, format, ap);
    for (char *c = to; *c; c++)
      if (*c == '\n') *c = '|';
  }
  unlock();
  errno = saved;
}

void t_fail(const char *file, int line, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  put(file, line, format, ap);
  va_end(ap);
}

void t_false(const char *file, int line, const char *condition, const char *input, ...) {
  char in[400];
  va_list ap;
  va_start(ap, input);
  vsnprintf(in, sizeof in, input, ap);
  va_end(ap);
  t_fail(file, line, "got false want true: %s, input: %s", condition, in);
}

static bool required(const char *need) {
  const char *r = getenv("PHX_REQUIRE");
  if (!r || !need) return false;
  size_t n = strlen(need);
  if (!strcmp(r, "all")) return true;
  for (const char *p = r; (p = strstr(p, need)); p += n)
    if ((p == r || p[-1] == ',') && (p[n] == 0 || p[n] == ',')) return true;
  return false;
}

void t_skip(const char *file, int line, const char *need, const char *format, ...) {
  char why[512];
  va_list ap;
  va_start(ap, format);
  vsnprintf(why, sizeof why, format, ap);
  va_end(ap);
  if (required(need)) {
    t_fail(file, line, "PHX_REQUIRE asks for %s, got none: %s", need, why);
    return;
  }
  lock();
  if (now_running->skips++ == 0 && now_running->failures == 0)
    snprintf(now_running->reason[0], sizeof now_running->reason[0], "%s", why);
  unlock();
}

bool t_failed(void) { return now_running->failures > 0; }
bool t_skipped(void) { return now_running->skips > 0; }

static const char *number(char *to, size_t size, long long v) {
  const char *name = v < 0 && v > -4096 ? strerrorname_np((int)-v) : NULL;
  snprintf(to, size, name && v != -1 ? "%lld (-%s)" : "%lld", v, name);
  return to;
}

bool t_int(const char *file, int line, const char *what, long long got, long long want,
           int got_errno, int want_errno, const char *input, ...) {
  if (got == want && got_errno == want_errno) return true;
  char in[256], g[64], w[64];
  va_list ap;
  va_start(ap, input);
  vsnprintf(in, sizeof in, input, ap);
  va_end(ap);
  number(g, sizeof g, got);
  number(w, sizeof w, want);
  if (got_errno == want_errno)
    t_fail(file, line, "%s: got %s want %s, input: %s", what, g, w, in);
  else
    t_fail(file, line, "%s: got %s errno %s want %s errno %s, input: %s", what, g,
           t_errno(got_errno), w, t_errno(want_errno), in);
  return false;
}

static void hung(int sig) {
  (void)sig;
  ssize_t n = write(STDOUT_FILENO, hung_line, strlen(hung_line));
  (void)n;
  t_kill_children();
  _exit(1);
}

/* Also used in children, with a shorter limit. */
void t_watch(const char *name, unsigned seconds) {
  static char stack[65536]; /* Go's threads run on small stacks */
  snprintf(hung_line, sizeof hung_line, "FAIL %s: hung (%u s)\n", name, seconds);
  stack_t alt = {.ss_sp = stack, .ss_size = sizeof stack}, old;
  if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE)) sigaltstack(&alt, NULL);
  sigaction(SIGALRM, &(struct sigaction){.sa_handler = hung, .sa_flags = SA_ONSTACK}, NULL);
  alarm(seconds);
}

static void share_verdict(void) {
  const char *inherited = getenv("T_VERDICT_FD");
  verdict_fd = inherited ? atoi(inherited) : memfd_create("verdict", 0);
  if (verdict_fd < 0 || (!inherited && ftruncate(verdict_fd, sizeof *now_running))) abort();
  now_running = mmap(NULL, sizeof *now_running, PROT_READ | PROT_WRITE, MAP_SHARED, verdict_fd, 0);
  if (now_running == MAP_FAILED) abort();
  char text[16];
  snprintf(text, sizeof text, "%d", verdict_fd);
  setenv("T_VERDICT_FD", text, 1);
}

static int run_entry(const char *name, const t_case *children) {
  for (; children && children->name; children++)
    if (!strcmp(children->name, name)) {
      t_watch(name, T_CHILD_SECONDS);
      children->run();
      return 0;
    }
  t_fail(__FILE__, __LINE__, "no child entry %s", name);
  return 2;
}

/* What a background job ignores is inherited by exec; here it is the default. */
static void default_signals(void) {
  static const int inherited[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
  for (size_t i = 0; i < sizeof inherited / sizeof *inherited; i++) {
    struct sigaction a;
    if (!sigaction(inherited[i], NULL, &a) && a.sa_handler == SIG_IGN) signal(inherited[i], SIG_DFL);
  }
}

int t_main(int argc, char **argv, const t_case *cases, size_t n, const t_case *children) {
  const char *filter = argc > 1 ? argv[1] : "";
  size_t failed = 0, skipped = 0, ran = 0;
  share_verdict();
  if (t_is_child()) return run_entry(getenv("T_CHILD"), children);
  default_signals();
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; i < n; i++) {
    if (!strstr(cases[i].name, filter)) continue;
    memset(now_running, 0, sizeof *now_running);
    ran++;
    t_watch(cases[i].name, T_CASE_SECONDS);
    cases[i].run();
    alarm(0);
    t_kill_children();
    if (now_running->failures) {
      failed++;
      printf("FAIL %s: %s\n", cases[i].name, now_running->reason[0]);
      for (int k = 1; k < now_running->failures && k < REASONS; k++)
        printf("  also %s\n", now_running->reason[k]);
      if (now_running->failures > REASONS) printf("  also %d more\n", now_running->failures - REASONS);
    } else if (now_running->skips) {
      skipped++;
      printf("skip %s: %s\n", cases[i].name, now_running->reason[0]);
    } else {
      printf("ok %s\n", cases[i].name);
    }
    fflush(stdout);
  }
  t_watch("exit_of_the_program", T_CASE_SECONDS); /* the library's exit handler comes yet */
  return failed ? 1 : ran == skipped ? 77 : 0;
}
