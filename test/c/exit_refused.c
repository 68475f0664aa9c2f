/* Threads that go on calling while exit() runs are refused, and do not keep it
 * waiting: what they had begun before is waited for, a refused call is not. */
#include "t.h"

enum { THREADS = 96 };
static int fd; /* 64 KiB of pattern 1 */
static atomic_int rounds;

/* Half of the threads move bytes until they are refused; nobody ever stops. */
static void *call_for_ever(void *no) {
  char *m = t_map(T_PAGE);
  for (bool io = (intptr_t)no % 2;; rounds++) {
    phxfs_io_req_t q = {fd, -1, m, 0, 4096, 0, 0};
    int r = io ? phxfs_read_batch(&q, 1) : 0;
    if (r == -ESHUTDOWN) io = false;
    else if (r) t_fail(__FILE__, __LINE__, "read_batch gives %d", r);
    ssize_t n = phxfs_read(fd, -1, m, 0, 16, 0);
    if (n != 16 && n != -ESHUTDOWN) t_fail(__FILE__, __LINE__, "read gives %zd", n);
    r = phxfs_find_dev(3);
    if (r != 3 && r != -ESHUTDOWN) t_fail(__FILE__, __LINE__, "find_dev gives %d", r);
  }
  return NULL;
}

static void child_exits(void) {
  double x0 = t_now();
  pthread_t t;
  fd = t_file(T_PAGE, 1);
  for (intptr_t i = 0; i < THREADS; i++) pthread_create(&t, NULL, call_for_ever, (void *)i);
  CHECK(T_EVENTUALLY(rounds > 10 * THREADS), "%d rounds", rounds);
  fprintf(stderr, "spin %.2f\n", t_now() - x0);
  exit(7);
}

/* The library's own bound is 30 s. */
static void refused_calls_do_not_hold_exit(void) {
  double begun = t_now();
  CHECK_EXIT(t_spawn("exits", NULL, -1, -1), 7, "96 threads that call");
  CHECK(t_now() - begun < T_WAIT_SECONDS, "%.1f s", t_now() - begun);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(refused_calls_do_not_hold_exit)};
  static const t_case children[] = {{"exits", child_exits}, {0}};
  t_use_host();
  return T_RUN(argc, argv, cases, children);
}
