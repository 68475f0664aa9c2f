/* Forks while another thread is in the middle of the first call, in a process
 * and in a child: such a child works. */
#include "fork_kit.h"

static pthread_barrier_t begin;

static void works(void *who) { kit_works(who); }
static void only_forks(void *who) { CHECK_EXIT(t_fork(works, who), 0, "grandchild"); }

static void *first_call(void *arg) {
  (void)arg;
  pthread_barrier_wait(&begin);
  CHECK_EQ(phxfs_find_dev(1), 1, "the first call, during forks");
  return NULL;
}

/* The start takes about 2 ms; the forks are spread over the first 4. */
static void fork_during_start(long delay_us, int generations);
static void next_generation(void *left) { fork_during_start(300, (int)(long)left); }

static void fork_during_start(long delay_us, int generations) {
  pthread_t t;
  pid_t p[6];
  pthread_barrier_init(&begin, NULL, 2);
  pthread_create(&t, NULL, first_call, NULL);
  pthread_barrier_wait(&begin);
  for (int i = 0; i < 6; i++) {
    for (double end = t_now() + 1e-6 * (double)delay_us; t_now() < end;) {
    }
    p[i] = i == 3 && generations ? t_fork(next_generation, (void *)(long)(generations - 1))
                                 : t_fork(i % 2 ? works : only_forks, "forked in the middle of a start");
  }
  pthread_join(t, NULL);
  for (int i = 0; i < 6; i++) CHECK_EXIT(p[i], 0, "forked in the middle of a start");
  kit_works("the process that started");
}

static void child_starts(void) { fork_during_start(atol(getenv("DELAY_US")), 2); }

static void forks_in_the_middle_of_a_start(void) {
  NEED_RESET();
  for (int i = 0; i < 12 && !t_failed(); i++) {
    char delay[32];
    snprintf(delay, sizeof delay, "DELAY_US=%d", i * 60);
    RUN_CHILD("starts", delay);
  }
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(forks_in_the_middle_of_a_start)};
  static const t_case children[] = {{"starts", child_starts}, {0}};
  kit_make();
  return T_RUN(argc, argv, cases, children);
}
