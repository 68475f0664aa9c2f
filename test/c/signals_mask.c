/* The signal mask of a thread is the same after a call, whichever call comes
 * first on it; signals that the host blocks everywhere reach its sigwait, and
 * no thread of the library's takes them. */
#include "t_signals.h"

static int fd;
static char *m;

static void call(int which) {
  static _Thread_local char b[65536];
  phxfs_io_req_t q[16];
  void *target;
  for (int i = 0; i < 16; i++) q[i] = (phxfs_io_req_t){fd, -1, b, i * 4096, 4096, i * 4096, 0};
  switch (which) {
  case 0: CHECK_OK(phxfs_read_batch(q, 16), 0, "read_batch"); break;
  case 1: CHECK_OK(phxfs_batch_wait(phxfs_batch_submit_read(q, 16)), 0, "submit, wait"); break;
  case 2: CHECK_OK(phxfs_batch_destroy(phxfs_batch_submit_read(q, 16)), 0, "submit, destroy"); break;
  case 3: CHECK_OK(phxfs_open(3), 0, "open"); break;
  case 4: CHECK_OK(phxfs_close(3), 0, "close"); break;
  case 5: CHECK_OK(phxfs_find_dev(2), 2, "find_dev"); break;
  case 6: CHECK_OK(phxfs_regmem(0, m + T_PAGE, T_PAGE, &target), 0, "regmem"); break;
  case 7: CHECK_OK(phxfs_deregmem(0, m + T_PAGE, T_PAGE), 0, "deregmem"); break;
  case 8: CHECK_OK(phxfs_read(fd, 0, m, 0, 4096, 0), 4096, "read"); break;
  case 9: CHECK_OK(phxfs_read(fd, -1, b, 0, 4096, 0), 4096, "read, CPU buffer"); break;
  case 10: CHECK_ERR(phxfs_read(-1, -1, b, 0, 4096, 0), -EBADF, EBADF, "read, failing"); break;
  case 11: CHECK_OK(phxfs_get_page_size(), 65536, "get_page_size"); break;
  case 12: CHECK(phxfs_io_engine_name() != NULL, "engine_name"); break;
  case 13: CHECK_ERR(phxfs_batch_wait((phxfs_batch_t *)77), -EINVAL, EINVAL, "wait, wild"); break;
  }
}
enum { CALLS = 14 };

static uint64_t mask_now(void) {
  uint64_t mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &mask, 8);
  return mask;
}

struct job {
  uint64_t mask;
  int first;
};

static void *first_calls(void *arg) {
  struct job *j = arg;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &j->mask, NULL, 8);
  uint64_t was = mask_now();
  for (int i = 0; i < 3; i++) {
    call(j->first);
    CHECK(mask_now() == was, "mask 0x%llx, was 0x%llx, call %d as number %d of its thread",
          (unsigned long long)mask_now(), (unsigned long long)was, j->first, i);
    if (j->first >= 3 && j->first <= 7) break;
  }
  return NULL;
}

/* Not 32 and 33: the C library keeps those for itself. */
static const uint64_t masks[] = {0, ~(3ull << 31), 1ull << (SIGCHLD - 1), ~(3ull << 31 | 1ull << (SIGPROF - 1)), 1ull << (SIGSEGV - 1) | 1ull << (SIGUSR1 - 1), 0x5555555455555555ull};
enum { MASKS = sizeof masks / sizeof *masks };

static void each_threads_first_call(void) {
  NOT_ASAN();
  for (int i = 0; i < MASKS; i++)
    for (int first = 0; first < CALLS; first++) {
      struct job j = {masks[i], first};
      pthread_t t;
      pthread_create(&t, NULL, first_calls, &j);
      pthread_join(t, NULL);
    }
}

static void child_first(void) { /* the very first call of the process */
  struct job j = {masks[atoi(getenv("MASK"))], atoi(getenv("FIRST"))};
  t_use_host();
  m = t_map(2 * T_PAGE), fd = t_file(T_PAGE, 1);
  first_calls(&j);
  uint64_t none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
}
static void the_process_first_call(void) {
  for (int i = 0; i < MASKS; i++)
    for (int k = 0; k < 4; k++) {
      char mask[32], first[32];
      snprintf(mask, sizeof mask, "MASK=%d", i), snprintf(first, sizeof first, "FIRST=%d", (const int[]){0, 3, 5, 11}[k]);
      RUN_CHILD("first", mask, first);
    }
}

/* Calls in a destructor of thread-specific data, before and after Go's own. */
static pthread_key_t late;
static void destructor(void *round) {
  uint64_t was = mask_now();
  call(0), call(8);
  CHECK(mask_now() == was, "mask 0x%llx, was 0x%llx, in a destructor", (unsigned long long)mask_now(), (unsigned long long)was);
  if ((uintptr_t)round < 3) pthread_setspecific(late, (void *)((uintptr_t)round + 1));
}
static void *dies_calling(void *call_first) {
  uint64_t mask = 1ull << (SIGCHLD - 1);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
  if (call_first) call(0);
  pthread_setspecific(late, (void *)1);
  return NULL;
}
static void calls_in_thread_destructors(void) {
  NOT_ASAN();
  pthread_key_create(&late, destructor);
  for (int i = 0; i < 40 && !t_failed(); i++) {
    pthread_t t;
    pthread_create(&t, NULL, dies_calling, i % 2 ? "" : NULL);
    pthread_join(t, NULL);
  }
}

/* Every thread of the host blocks these; only sigwait may get them. */
static void child_sigwait(void) {
  static const int signals[] = {SIGCHLD, SIGPROF, SIGALRM, SIGUSR1, SIGURG, SIGWINCH, 34, 35};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaddset(&set, signals[i]);
  if (getenv("EARLY")) pthread_sigmask(SIG_BLOCK, &set, NULL);
  t_use_host();
  m = t_map(2 * T_PAGE), fd = t_file(T_PAGE, 1);
  call(0), call(1);
  if (!getenv("EARLY")) pthread_sigmask(SIG_BLOCK, &set, NULL);
  call(0), call(1);
  for (int round = 0; round < 200 && !t_failed(); round++)
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
      siginfo_t info;
      kill(getpid(), signals[i]); /* to the process: the kernel picks a thread that does not block it */
      int got = sigtimedwait(&set, &info, &(struct timespec){.tv_sec = T_WAIT_SECONDS});
      NEED(got == signals[i], "round %d: sigtimedwait gives %d want %d", round, got, signals[i]);
    }
}
static void blocked_signals_reach_sigwait(void) {
  NOT_ASAN();
  RUN_CHILD("sigwait", "EARLY=1");
  RUN_CHILD("sigwait", "EARLY");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(each_threads_first_call), T_CASE(the_process_first_call), T_CASE(calls_in_thread_destructors),
    T_CASE(blocked_signals_reach_sigwait),
  };
  static const t_case children[] = {{"first", child_first}, {"sigwait", child_sigwait}, {0}};
  void *target;
  t_use_host();
  if (!t_is_child()) {
    m = t_map(2 * T_PAGE), fd = t_file(T_PAGE, 1);
    if (phxfs_open(0) || phxfs_open(0) || phxfs_regmem(0, m, T_PAGE, &target)) return 1;
  }
  return T_RUN(argc, argv, cases, children);
}
