/* Many threads make their first call at the same moment: they take turns
 * (cabi/settle.c), and a child forked meanwhile finds the turn free. */
#include "fork_kit.h"

#include <sys/resource.h>

static pthread_barrier_t together;

static void *first_call(void *arg) {
  pthread_barrier_wait(&together);
  CHECK_EQ(phxfs_find_dev(3), 3, "%s", (const char *)arg);
  pthread_barrier_wait(&together); /* none is gone before all are there */
  return NULL;
}

static pthread_t *begin(int threads) {
  pthread_t *t = calloc((size_t)threads, sizeof *t);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 << 10);
  pthread_barrier_init(&together, NULL, (unsigned)threads + 1);
  for (int i = 0; i < threads; i++) {
    if (!pthread_create(&t[i], &small, first_call, "one of many")) continue;
    t_fail(__FILE__, __LINE__, "thread %d of %d cannot be made", i, threads);
    exit(1);
  }
  pthread_barrier_wait(&together);
  return t;
}

static void end(pthread_t *t, int threads) {
  pthread_barrier_wait(&together);
  for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
  free(t);
}

static double cpu_seconds(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* They sleep, which the processor time tells however busy the machine is: those
 * that spin need 20 s of it and more on two cores. */
static void child_herd(void) {
  enum { MANY = 2000 };
  double before = cpu_seconds();
  end(begin(MANY), MANY);
  CHECK(cpu_seconds() - before < 8, "%.1f s of processor time", cpu_seconds() - before);
}
static void two_thousand_first_calls_at_once(void) {
  NOT_ASAN();
  RUN_CHILD("herd", "PHXFS_LOG");
}

/* The thread that starts Go needs no turn; the next one does. */
static void *second_thread(void *who) {
  kit_works(who);
  return NULL;
}
static void works(void *who) {
  pthread_t t;
  CHECK_OK(phxfs_find_dev(3), 3, "%s", (const char *)who);
  pthread_create(&t, NULL, second_thread, who);
  pthread_join(t, NULL);
}

/* The turn is taken nearly all the time. */
static void child_forks(void) {
  enum { MANY = 1000, FORKS = 12 };
  pid_t p[FORKS];
  CHECK_OK(phxfs_find_dev(3), 3, "Go runs");
  pthread_t *t = begin(MANY);
  for (int i = 0; i < FORKS; i++) p[i] = t_fork(works, "forked while threads take turns");
  for (int i = 0; i < FORKS; i++) CHECK_EXIT(p[i], 0, "forked while threads take turns");
  end(t, MANY);
  kit_works("the parent");
}
static void forks_while_threads_take_turns(void) {
  NEED_RESET();
  RUN_CHILD("forks", "PHXFS_LOG");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(two_thousand_first_calls_at_once), T_CASE(forks_while_threads_take_turns)};
  static const t_case children[] = {{"herd", child_herd}, {"forks", child_forks}, {0}};
  kit_make();
  return T_RUN(argc, argv, cases, children);
}
