/* The host's handlers across forks and restarts: those from before Go lie
 * beneath it and are passed what is not Go's, those from after lie on top, and
 * a child has them where its parent had them. */
#include "fork_kit.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static sigjmp_buf back;
static volatile sig_atomic_t beneath_ran, top_ran;
static struct sigaction chained; /* what was there before the one on top */

static void beneath(int sig, siginfo_t *info, void *context) {
  (void)sig, (void)info, (void)context;
  beneath_ran++;
  siglongjmp(back, 1);
}
static void top_chains(int sig, siginfo_t *info, void *context) {
  if (++top_ran > 10) _exit(99); /* a loop */
  chained.sa_sigaction(sig, info, context);
}
static void top_ends(int sig, siginfo_t *info, void *context) {
  (void)sig, (void)info, (void)context;
  top_ran++;
  siglongjmp(back, 1);
}

static void install(int sig, void (*f)(int, siginfo_t *, void *), struct sigaction *old) {
  struct sigaction a = {.sa_sigaction = f, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(sig, &a, old);
}

static bool fault(void) { /* true: a handler has come back */
  char *p = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sigsetjmp(back, 1)) return munmap(p, 4096) == 0;
  *(volatile char *)p = 1;
  return false;
}

static void faults(int want_beneath, int want_top, const char *who) {
  beneath_ran = top_ran = 0;
  CHECK(fault(), "%s", who);
  CHECK_EQ(beneath_ran, want_beneath, "%s: the handler beneath", who);
  CHECK_EQ(top_ran, want_top, "%s: the handler on top", who);
}

struct want {
  int beneath, top;
};
static void child(void *arg) {
  struct want *w = arg;
  faults(w->beneath, w->top, "a child before its first call");
  kit_works("a child");
  faults(w->beneath, w->top, "a child after its first call");
}
static void grandparent(void *arg) {
  child(arg);
  CHECK_EXIT(t_fork(child, arg), 0, "a grandchild");
  faults(((struct want *)arg)->beneath, ((struct want *)arg)->top, "a child, after its own child");
}
static void childless_parent(void *arg) { CHECK_EXIT(t_fork(grandparent, arg), 0, "a grandchild of a child that never calls"); }

static void everywhere(struct want want) {
  static struct want w; /* a child may lose the stacks of threads that it has not */
  w = want;
  faults(w.beneath, w.top, "the parent");
  CHECK_EXIT(t_fork(grandparent, &w), 0, "a child");
  CHECK_EXIT(t_fork(childless_parent, &w), 0, "a child that never calls");
  kit_works("the parent, afterwards");
  faults(w.beneath, w.top, "the parent, afterwards");
}

static void child_before(void) { /* installed before the first call */
  install(SIGSEGV, beneath, NULL);
  kit_works("the parent");
  everywhere((struct want){1, 0});
}
static void child_after(void) {
  kit_works("the parent");
  install(SIGSEGV, top_ends, NULL);
  everywhere((struct want){0, 1});
}
static void child_both(void) { /* top chains to Go's, which passes on */
  install(SIGSEGV, beneath, NULL);
  kit_works("the parent");
  install(SIGSEGV, top_chains, &chained);
  CHECK(chained.sa_sigaction != beneath, "Go's handler lies between them");
  faults(1, 1, "the parent");
  everywhere((struct want){1, 1});
}

/* In a child, before its first call: it comes to lie beneath. */
static void installs_in_child(void *arg) {
  install(SIGSEGV, beneath, NULL);
  child(arg);
  CHECK_EXIT(t_fork(child, arg), 0, "a grandchild");
  install(SIGSEGV, top_chains, &chained);
  CHECK(chained.sa_sigaction != beneath, "Go's handler lies between them");
  faults(1, 1, "the child, with another on top");
  everywhere((struct want){1, 1});
}
static void child_in_child(void) {
  static struct want w = {1, 0};
  kit_works("the parent");
  CHECK_EXIT(t_fork(installs_in_child, &w), 0, "a child that installs a handler before its first call");
}

/* One on top that chains, in a child that has not called: Go's memory there
 * handles nothing, and the fault ends the process as it would without Go. */
static void dies(void *arg) {
  (void)arg;
  fault();
  _exit(98);
}
static void child_dies(void) {
  kit_works("the parent");
  install(SIGSEGV, top_chains, &chained);
  pid_t pid = t_fork(dies, NULL);
  int status = t_wait(pid);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %#x", status);
}

static volatile sig_atomic_t counted;
static void count(int sig) { (void)sig, counted++; }
static void child_gets(void *arg) {
  (void)arg;
  for (int i = 0; i < 2; i++) {
    counted = 0;
    raise(SIGPIPE), raise(SIGURG), raise(SIGUSR1), raise(SIGCHLD);
    CHECK_EQ(counted, 4, "SIGPIPE, SIGURG, SIGUSR1, SIGCHLD, %s the first call", i ? "after" : "before");
    if (i == 0) kit_works("a child");
  }
}
static void child_others(void) {
  static const int sigs[] = {SIGPIPE, SIGURG, SIGUSR1, SIGCHLD};
  for (int late = 0; late < 2; late++) {
    for (int i = 0; i < 4; i++) sigaction(sigs[i], &(struct sigaction){.sa_handler = count, .sa_flags = SA_ONSTACK | SA_RESTART}, NULL);
    kit_works("the parent");
    child_gets(NULL);
    for (int i = 0; i < 2; i++) CHECK_EXIT(t_fork(child_gets, NULL), 0, "a child");
  }
}

static void one_from_before_go_gets_what_is_not_gos(void) { NEED_RESET(); RUN_CHILD("before", NULL); }
static void one_from_after_stays_on_top(void) { NEED_RESET(); RUN_CHILD("after", NULL); }
static void one_that_chains_makes_no_loop(void) { NEED_RESET(); RUN_CHILD("both", NULL); }
static void one_made_in_a_child_lies_beneath(void) { NEED_RESET(); RUN_CHILD("in_child", NULL); }
static void chaining_into_a_reset_go_ends_the_process(void) { NEED_RESET(); RUN_CHILD("dies", NULL); }
static void other_signals_stay_the_hosts(void) { NEED_RESET(); RUN_CHILD("others", NULL); }

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(one_from_before_go_gets_what_is_not_gos), T_CASE(one_from_after_stays_on_top), T_CASE(one_that_chains_makes_no_loop),
    T_CASE(one_made_in_a_child_lies_beneath), T_CASE(chaining_into_a_reset_go_ends_the_process), T_CASE(other_signals_stay_the_hosts),
  };
  static const t_case children[] = {
    {"before", child_before}, {"after", child_after}, {"both", child_both}, {"in_child", child_in_child},
    {"dies", child_dies}, {"others", child_others}, {0}};
  kit_make();
  return T_RUN(argc, argv, cases, children);
}
