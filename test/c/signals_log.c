/* A handler that has interrupted a call may read into a CPU buffer, and what
 * goes wrong there gets its line in the log. */
#include "t.h"

#include <signal.h>

static int fd; /* 64 KiB of pattern 1 */
static char *m;
static atomic_bool over;
static atomic_int hits, rounds;

static void handler(int sig) {
  char b[64];
  int saved = errno;
  (void)sig;
  ssize_t bad = phxfs_read(-1, -1, b, 0, 16, 0), good = phxfs_read(fd, -1, b, 0, 64, T_PAGE - 16);
  if (bad != -EBADF || good != 16) t_fail(__FILE__, __LINE__, "in the handler: %zd and %zd", bad, good);
  hits++;
  errno = saved;
}

static void *calls(void *arg) {
  while (!over) {
    CHECK_OK(phxfs_read(fd, 0, m, 0, 4096, 0), 4096, "interrupted");
    CHECK_OK(phxfs_find_dev(3), 3, "interrupted");
    rounds++;
  }
  return arg;
}

static void child_interrupts(void) {
  pthread_t t;
  void *target;
  fd = t_file(T_PAGE, 1), m = t_map(T_PAGE);
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler}, NULL);
  CHECK_OK(phxfs_open(0), 0, "host");
  CHECK_OK(phxfs_regmem(0, m, T_PAGE, &target), 0, "host");
  pthread_create(&t, NULL, calls, NULL);
#ifdef __SANITIZE_ADDRESS__ /* its start of a thread holds locks that the first call of a handler wants, too */
  CHECK(T_EVENTUALLY(rounds > 0), "the thread calls");
#endif
  for (int i = 0; i < 2000 && !t_failed(); i++) { /* each at another moment of a call */
    int had = hits;
    pthread_kill(t, SIGUSR1);
    CHECK(T_EVENTUALLY(hits > had), "signal %d is handled", i);
  }
  over = true;
  pthread_join(t, NULL);
}
static void reads_in_a_handler_that_interrupts_a_call(void) {
  RUN_CHILD("interrupts", "PHXFS_LOG=debug", "PHXFS_LOG_FILE=/dev/null");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(reads_in_a_handler_that_interrupts_a_call)};
  static const t_case children[] = {{"interrupts", child_interrupts}, {0}};
  t_use_host();
  return T_RUN(argc, argv, cases, children);
}
