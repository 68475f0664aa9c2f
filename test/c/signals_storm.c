/* Signals at 1 kHz and more, with a handler that asks for no stack of its own
 * and no restart of system calls, change no result; nor does the place where
 * they hit: in Go, in C, in the kernel. */
#include "t_signals.h"

#include <fcntl.h>

static int fd;
static atomic_long hits;
static volatile char sink;

static void handler(int sig) {
  char room[12 << 10]; /* more than a small stack has */
  (void)sig;
  for (size_t i = 0; i < sizeof room; i += 64) room[i] = (char)i, sink = room[i];
  hits++;
}

enum { BLOCKS = 64 };
static void *work(void *arg) {
  char *m = t_map(BLOCKS * 4096), *w = t_map(T_PAGE);
  double end = t_now() + (double)(intptr_t)arg;
  int out = t_file(0, 0), pipes[2];
  void *target;
  if (pipe(pipes)) return NULL;
  for (int round = 0; t_now() < end && !t_failed(); round++) {
    phxfs_io_req_t q[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) q[i] = (phxfs_io_req_t){fd, -1, m, i * 4096, 4096, i * 4096, 0};
    memset(m, 0, BLOCKS * 4096);
    CHECK_OK(phxfs_read_batch(q, BLOCKS), 0, "round %d", round);
    CHECK_DATA(m, BLOCKS * 4096, 1, 0, "round %d", round);
    CHECK_OK(phxfs_read_batch(q, 1), 0, "round %d", round);
    CHECK_OK(phxfs_batch_wait(phxfs_batch_submit_read(q, BLOCKS)), 0, "round %d", round);
    CHECK_OK(phxfs_regmem(0, w, T_PAGE, &target), 0, "round %d", round);
    CHECK_OK(phxfs_read(fd, 0, w, 0, 4096, 4096), 4096, "round %d", round);
    CHECK_DATA(w, 4096, 1, 4096, "round %d", round);
    CHECK_OK(phxfs_write(out, -1, m, 0, T_PAGE, 0), T_PAGE, "round %d", round);
    CHECK_OK(phxfs_deregmem(0, w, T_PAGE), 0, "round %d", round);
    CHECK_ERR(phxfs_read(pipes[0], -1, m, 0, 16, 0), -ESPIPE, ESPIPE, "round %d", round);
    CHECK_ERR(phxfs_open(99), -1, EINVAL, "a log line, round %d", round);
  }
  return NULL;
}

static pthread_t workers[4];
static atomic_bool over;
static void *bombard(void *arg) { /* each worker, as fast as it goes */
  (void)arg;
  while (!over)
    for (int i = 0; i < 4; i++) pthread_kill(workers[i], SIGUSR1);
  return NULL;
}

static void install(void) {
  struct sigaction a = {.sa_handler = handler};
  sigaction(SIGALRM, &a, NULL), sigaction(SIGUSR1, &a, NULL), sigaction(SIGPROF, &a, NULL), sigaction(SIGCHLD, &a, NULL);
}

static void storm(void) {
  bool late = getenv("LATE") != NULL;
  alarm(0);
  t_use_host();
  fd = t_file(BLOCKS * 4096, 1);
  if (!late) install();
  CHECK_OK(phxfs_open(0), 0, "first use");
  if (late) install();
  setitimer(ITIMER_REAL, &(struct itimerval){{.tv_usec = 1000}, {.tv_usec = 1000}}, NULL);
  setitimer(ITIMER_PROF, &(struct itimerval){{.tv_usec = 1000}, {.tv_usec = 1000}}, NULL);
  for (intptr_t i = 0; i < 4; i++) pthread_create(&workers[i], NULL, work, (void *)1);
  if (getenv("BOMBARD")) {
    pthread_t t;
    pthread_create(&t, NULL, bombard, NULL);
    T_EVENTUALLY(hits > 3000);
    over = true;
    pthread_join(t, NULL);
  }
  for (int i = 0; i < 4; i++) pthread_join(workers[i], NULL);
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
  CHECK(hits > 20, "only %ld signals", (long)hits);
}

static void a_thousand_a_second(void) {
  NOT_ASAN();
  RUN_CHILD("storm", "PHXFS_LOG=error", "PHXFS_LOG_FILE=log");
}
static void a_thousand_a_second_handlers_set_late(void) {
  NOT_ASAN();
  RUN_CHILD("storm", "LATE=1", "PHXFS_LOG=error", "PHXFS_LOG_FILE=log");
}
static void as_many_as_there_can_be(void) {
  NOT_ASAN();
  RUN_CHILD("storm", "LATE=1", "BOMBARD=1");
}
static void as_many_as_there_can_be_set_early(void) {
  NOT_ASAN();
  RUN_CHILD("storm", "BOMBARD=1");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(a_thousand_a_second), T_CASE(a_thousand_a_second_handlers_set_late),
                                 T_CASE(as_many_as_there_can_be), T_CASE(as_many_as_there_can_be_set_early)};
  static const t_case children[] = {{"storm", storm}, {0}};
  return T_RUN(argc, argv, cases, children);
}
