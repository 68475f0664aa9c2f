/* Handlers of the host work as if there were no library: installed before it is
 * loaded, after that, and after its first use; with and without SA_ONSTACK; on
 * threads that call and on others; and a fault can be recovered from. */
#include "t_load.h"
#include "t_signals.h"

static struct t_api lib;
static int fd; /* 64 KiB of pattern 1 */
static const int some[] = {SIGSEGV, SIGBUS, SIGFPE, SIGPIPE, SIGALRM, SIGPROF, SIGURG, SIGCHLD, SIGUSR1, SIGTERM, 34};
#define SOME ((int)(sizeof some / sizeof *some))
static int flags;

static void calls(const char *when) {
  char b[16 * 4096];
  phxfs_io_req_t q[16];
  for (int i = 0; i < 16; i++) q[i] = (phxfs_io_req_t){fd, -1, b, i * 4096, 4096, i * 4096, 0};
  CHECK_OK(lib.read_batch(q, 16), 0, "%s", when);
  CHECK_DATA(b, sizeof b, 1, 0, "%s", when);
  CHECK_OK(lib.wait(lib.submit_read(q, 16)), 0, "%s", when);
}

static void install(void) {
  for (int i = 0; i < SOME; i++) {
    struct sigaction a = {.sa_sigaction = t_note, .sa_flags = SA_SIGINFO | flags};
    sigaddset(&a.sa_mask, SIGUSR2);
    CHECK_EQ(sigaction(some[i], &a, NULL), 0, "%s", t_signame(some[i]));
  }
}

static bool inside(const void *p, const char *lo, size_t n) { return (const char *)p >= lo && (const char *)p < lo + n; }

/* own: the alternate stack of this thread, NULL: it has made none. */
static void each_signal(const char *who, const char *own, size_t own_size) {
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < SOME; i++) {
      int sig = some[i];
      sigset_t before, after;
      pthread_sigmask(SIG_SETMASK, NULL, &before);
      t_seen = 0, t_jump = t_synchronous(sig);
      if (!sigsetjmp(t_back, 1)) t_cause(sig);
      const char *name = t_signame(sig);
      NEED(t_seen == sig, "%s, %s: the handler saw %d", who, name, t_seen);
      if (sig == SIGSEGV) CHECK(t_addr == (void *)16 && t_code == SEGV_MAPERR, "%s: si_addr %p si_code %d", who, t_addr, t_code);
      if (sig == SIGBUS) CHECK(t_addr == t_hole + 4097 && t_code == BUS_ADRERR, "%s: si_addr %p si_code %d", who, t_addr, t_code);
      if (sig == SIGFPE && t_code != SI_TKILL) CHECK_EQ(t_code, FPE_INTDIV, "%s: si_code", who);
      if (sig == SIGCHLD) CHECK_EQ(t_code, CLD_EXITED, "%s: si_code", who);
      if (t_synchronous(sig) || sig == SIGURG) CHECK_EQ(t_tid, gettid(), "%s, %s: the thread", who, name);
      if (own && flags & SA_ONSTACK && t_tid == gettid())
        CHECK(inside(t_sp, own, own_size), "%s, %s: not on the thread's own alternate stack", who, name);
      pthread_sigmask(SIG_SETMASK, NULL, &after);
      CHECK(!memcmp(&before, &after, 8), "%s, %s: the mask after recovery", who, name);
    }
}

static void *on_thread(void *who) {
  bool caller = strstr(who, "calls"), stack = strstr(who, "stack");
  char *own = stack ? t_map(T_PAGE) : NULL;
  if (own) CHECK_EQ(sigaltstack(&(stack_t){.ss_sp = own, .ss_size = T_PAGE}, NULL), 0, "%s", (char *)who);
  if (caller) calls(who);
  each_signal(who, own, T_PAGE);
  if (caller) calls(who);
  if (own) {
    stack_t now;
    sigaltstack(NULL, &now);
    CHECK(now.ss_sp == own && now.ss_size == T_PAGE, "%s: the alternate stack", (char *)who);
  }
  return NULL;
}

static void story(void) {
  const char *when = getenv("WHEN");
  flags = atoi(getenv("FLAGS"));
  pthread_t t;
  t_use_host(), t_signals_setup();
  fd = t_file(T_PAGE, 1);
  if (!strcmp(when, "before load")) install();
  if (!t_load(&lib)) return;
  if (!strcmp(when, "after load")) install();
  if (strcmp(when, "after use")) each_signal("main, before the first call", NULL, 0);
  calls("first");
  if (!strcmp(when, "after use")) install();
  each_signal("main", NULL, 0);
  calls("main, afterwards");
  static const char *const whos[] = {"a thread that calls", "a thread with an alternate stack that calls", "a thread without", "a thread with an alternate stack"};
  for (int i = 0; i < 4; i++) {
    pthread_create(&t, NULL, on_thread, (void *)whos[i]);
    pthread_join(t, NULL);
  }
  /* The host sees its own dispositions, flags included, but for faults. */
  for (int i = 0; i < SOME; i++) {
    struct sigaction a;
    sigaction(some[i], NULL, &a);
    if (t_synchronous(some[i])) continue;
    CHECK(a.sa_sigaction == t_note && (a.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_RESTART)) == (SA_SIGINFO | flags),
          "%s: sigaction gives flags 0x%x", t_signame(some[i]), a.sa_flags);
  }
}

static void child(void *arg) {
  (void)arg;
  alarm(0);
  install();
  each_signal("a forked child, before its first call", NULL, 0);
  calls("a forked child");
  each_signal("a forked child", NULL, 0);
}
static void forked(void) {
  t_use_host(), t_signals_setup();
  fd = t_file(T_PAGE, 1);
  install();
  if (!t_load(&lib)) return;
  calls("parent");
  CHECK_EXIT(t_fork(child, NULL), 0, "child");
}

/* sa_mask, SA_NODEFER and SA_RESETHAND of a host's SIGSEGV handler. */
static sigset_t inside_mask;
static void look(int sig, siginfo_t *info, void *context) {
  pthread_sigmask(SIG_SETMASK, NULL, &inside_mask);
  t_note(sig, info, context);
}
static void details(void) {
  struct sigaction a = {.sa_sigaction = look, .sa_flags = SA_SIGINFO | SA_NODEFER};
  int status;
  t_use_host(), t_signals_setup();
  fd = t_file(T_PAGE, 1);
  sigaddset(&a.sa_mask, SIGUSR2);
  sigaction(SIGSEGV, &a, NULL);
  a.sa_flags |= SA_RESETHAND;
  sigaction(SIGBUS, &a, NULL);
  if (!t_load(&lib)) return;
  calls("first");
  t_jump = 1;
  for (int i = 0; i < 3; i++) { /* without saving the mask: nothing may stay blocked but sa_mask */
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    if (!sigsetjmp(t_back, 0)) t_cause(SIGSEGV);
    CHECK_EQ(t_seen, SIGSEGV, "round %d", i);
    CHECK(sigismember(&inside_mask, SIGUSR2) && !sigismember(&inside_mask, SIGSEGV) && !sigismember(&inside_mask, SIGUSR1),
          "the mask inside the handler is not sa_mask, round %d", i);
  }
  pid_t pid = fork();
  if (pid == 0) {
    calls("child");
    if (!sigsetjmp(t_back, 1)) t_cause(SIGBUS);
    t_jump = 0;
    t_cause(SIGBUS); /* SA_RESETHAND: the second one is the default */
    _exit(9);
  }
  waitpid(pid, &status, 0);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS, "SA_RESETHAND: status 0x%x", status);
}

#define STORY(name, when, flags) \
  static void name(void) { RUN_CHILD("story", "WHEN=" when, "FLAGS=" flags); }
_Static_assert(SA_ONSTACK == 0x08000000 && SA_RESTART == 0x10000000, "the numbers below");
STORY(set_before_load, "before load", "0")
STORY(set_after_load, "after load", "0")
STORY(set_after_first_use, "after use", "0")
STORY(set_before_load_on_stack, "before load", "134217728")
STORY(set_after_load_on_stack, "after load", "134217728")
STORY(set_after_first_use_on_stack, "after use", "134217728")
STORY(set_before_load_restart, "before load", "268435456")
static void in_a_forked_child(void) {
  NOT_ASAN();
  RUN_CHILD("forked", NULL);
}
static void mask_and_flags_of_a_fault_handler(void) {
  NOT_ASAN();
  RUN_CHILD("details", NULL);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(set_before_load), T_CASE(set_after_load), T_CASE(set_after_first_use), T_CASE(set_before_load_on_stack),
    T_CASE(set_after_load_on_stack), T_CASE(set_after_first_use_on_stack), T_CASE(set_before_load_restart),
    T_CASE(in_a_forked_child), T_CASE(mask_and_flags_of_a_fault_handler),
  };
  static const t_case children[] = {{"story", story}, {"forked", forked}, {"details", details}, {0}};
  return T_RUN(argc, argv, cases, children);
}
