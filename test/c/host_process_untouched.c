/* What the library does to the process it lives in: its signals, its masks, its
 * small stacks and its cancelled threads stay as they were. */
#include "t.h"

#include <signal.h>
#include <sys/wait.h>

static void some_calls(void) {
  char b[4096];
  int fd = t_file(4096, 1);
  phxfs_io_req_t q[2] = {{fd, -1, b, 0, 4096, 0, 0}, {-1, -1, b, 0, 1, 0, 0}};
  CHECK_OK(phxfs_find_dev(1), 1, "calls");
  CHECK_OK(phxfs_read_batch(q, 2), 1, "calls");
  phxfs_batch_t *h = phxfs_batch_submit_read(q, 1);
  CHECK_OK(phxfs_batch_wait(h), 0, "calls");
  CHECK_DATA(b, 4096, 1, 0, "calls");
  close(fd);
}

static atomic_int seen[65];
static void note(int sig) { seen[sig]++; }

/* Go needs the signals of its own faults; every other one is the host's. */
static bool gos(int sig) { return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE; }

static void child_handlers(void) {
  struct sigaction before[65], after;
  sigset_t mask, now;
  for (int s = 1; s <= 64; s++) {
    if (s == SIGKILL || s == SIGSTOP || s == SIGALRM || (s >= 32 && s <= 34)) continue;
    if (s % 2 && !gos(s)) sigaction(s, &(struct sigaction){.sa_handler = note, .sa_flags = SA_RESTART | SA_ONSTACK}, NULL);
  }
  for (int s = 1; s <= 64; s++) sigaction(s, NULL, &before[s]);
  sigemptyset(&mask), sigaddset(&mask, SIGUSR2), sigaddset(&mask, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &mask, NULL);
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  some_calls(); /* the first one starts the runtime */
  some_calls();
  pthread_sigmask(SIG_BLOCK, NULL, &now);
  for (int s = 1; s <= 64; s++) {
    if (s >= 32 && s <= 33) continue; /* the C library's */
    CHECK_EQ(sigismember(&now, s), sigismember(&mask, s), "signal %d in the caller's mask", s);
    if (gos(s) || sigaction(s, NULL, &after)) continue;
    CHECK(after.sa_handler == before[s].sa_handler, "the handler of signal %d has changed from %p to %p", s, (void *)before[s].sa_handler, (void *)after.sa_handler);
  }
  int urgent = SIGURG % 2 ? SIGURG : SIGTRAP, pipes = SIGPIPE;
  sigaction(pipes, &(struct sigaction){.sa_handler = note, .sa_flags = SA_ONSTACK}, NULL);
  raise(urgent), raise(pipes), some_calls(), raise(urgent);
  CHECK_EQ(seen[urgent], 2, "the host's handler of signal %d", urgent);
  CHECK_EQ(seen[pipes], 1, "the host's handler of SIGPIPE");
}

/* SIGPIPE of the host keeps its default: it kills. */
static void child_sigpipe_kills(void) {
  int p[2];
  some_calls();
  if (pipe(p)) abort();
  close(p[0]);
  if (write(p[1], "x", 1) < 0) _exit(3);
}

static void signals_and_masks(void) { RUN_CHILD("handlers", NULL); }
static void sigpipe_has_its_default(void) {
  int status = t_wait(t_spawn("sigpipe_kills", NULL, -1, -1));
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE, "wait status %#x want death by SIGPIPE", (unsigned)status);
}

static void *calls_in_thread(void *arg) {
  (void)arg;
  some_calls();
  return NULL;
}
static void child_small_stack(void) {
  pthread_attr_t a;
  pthread_t t;
#ifdef __SANITIZE_ADDRESS__
  const int least = 256; /* its frames are large */
#else
  const int least = 32;
#endif
  for (int kib = least; kib <= 256; kib *= 2) { /* the first of them makes the first call */
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, (size_t)kib << 10);
    NEED(!pthread_create(&t, &a, calls_in_thread, NULL), "a stack of %d KiB", kib);
    pthread_join(t, NULL);
  }
}
static void threads_with_small_stacks(void) { RUN_CHILD("small_stack", NULL); }

/* A thread with a cancellation pending comes back from every call, also from one
 * that fails and writes a log line, before it ends: it would else stay counted as
 * inside, and exit would wait for it. */
static atomic_int came_back;
static void *cancelled(void *arg) {
  char b[16];
  phxfs_io_req_t q = {-1, -1, b, 0, 16, 0, 0};
  (void)arg;
  pthread_cancel(pthread_self());
  phxfs_read(-1, -1, b, 0, 16, 0), came_back++;
  phxfs_read(0, 5, b, 0, 16, 0), came_back++;
  phxfs_read_batch(&q, 1), came_back++;
  phxfs_batch_wait(phxfs_batch_submit_read(&q, 1)), came_back++;
  phxfs_open(99), came_back++;
  phxfs_close(0), came_back++;
  pthread_testcancel();
  came_back = 100;
  return NULL;
}
static void cancelled_threads(void) {
  pthread_t t;
  void *result;
  for (int i = 1; i <= 20; i++) {
    came_back = 0;
    pthread_create(&t, NULL, cancelled, NULL);
    pthread_join(t, &result);
    CHECK_EQ(came_back, 6, "calls that came back in a cancelled thread");
    CHECK(result == PTHREAD_CANCELED, "the thread was cancelled afterwards");
  }
}
static void child_cancel(void) { some_calls(), cancelled_threads(); }
static void child_cancel_first(void) { cancelled_threads(), some_calls(); }
#ifdef __SANITIZE_ADDRESS__
#define CANCEL(entry, ...) T_SKIP(NULL, "cancelled threads: AddressSanitizer cannot follow them")
#else
#define CANCEL RUN_CHILD
#endif
static void a_cancelled_thread_makes_the_first_call(void) { CANCEL("cancel_first", "PHXFS_LOG"); }
static void a_cancelled_thread_leaves_every_call(void) { CANCEL("cancel", "PHXFS_LOG"); }
static void a_cancelled_thread_leaves_calls_that_log(void) {
  CANCEL("cancel", "PHXFS_LOG=error", "PHXFS_LOG_FILE=log_of_cancel");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(signals_and_masks), T_CASE(sigpipe_has_its_default), T_CASE(threads_with_small_stacks),
    T_CASE(a_cancelled_thread_makes_the_first_call), T_CASE(a_cancelled_thread_leaves_every_call),
    T_CASE(a_cancelled_thread_leaves_calls_that_log),
  };
  static const t_case children[] = {
    {"handlers", child_handlers}, {"sigpipe_kills", child_sigpipe_kills}, {"small_stack", child_small_stack},
    {"cancel", child_cancel}, {"cancel_first", child_cancel_first}, {0}};
  t_use_host();
  return T_RUN(argc, argv, cases, children);
}
