/* The process ends when it is asked to, wherever that happens: on any thread,
 * in a signal handler that has interrupted a call, in a destructor of
 * thread-specific data, with I/O that never ends. */
#include "t_barrier.h"
#include "t_inject.h"

#include <signal.h>
#include <sys/wait.h>

static struct t_api lib;
static int fd;           /* 64 KiB of pattern 1 */
static t_barrier barrier;
static char *stuck;      /* the barrier */
static phxfs_io_req_t one;
static phxfs_batch_t *handle;

static void say(const char *text) {
  char *to = getenv("SAY_FD");
  if (to && write(atoi(to), text, strlen(text)) < 0) abort();
}

static bool begin(void) {
  t_use_host();
  fd = t_file(T_PAGE, 1), stuck = t_map(T_PAGE);
  return t_load(&lib);
}

/* An async read that stands in the kernel. */
static bool stand(void) {
  const char *why = t_barrier_arm(&barrier, stuck, 4096);
  one = (phxfs_io_req_t){fd, -1, stuck, 0, 4096, 0, 111};
  if (why) t_fail(__FILE__, __LINE__, "%s", why);
  if (why) return false;
  handle = lib.submit_read(&one, 1);
  if (!handle || !t_barrier_reached(&barrier)) t_fail(__FILE__, __LINE__, "the read does not stand");
  return handle;
}

static void release(void) { t_barrier_release(&barrier); }
static void exit_7(int sig) { (void)sig, exit(7); }
static pthread_t main_thread;

static void *alarm_main(void *tid) { /* once it waits inside the library */
  T_EVENTUALLY(t_asleep((int)(intptr_t)tid));
  pthread_kill(main_thread, SIGUSR1);
  return NULL;
}

static void in_handler(bool let_go) {
  pthread_t t;
  if (!begin()) return;
  if (!stand()) return;
  if (let_go) atexit(release); /* later than the library's own: runs before it */
  main_thread = pthread_self();
  signal(SIGUSR1, exit_7);
  pthread_create(&t, NULL, alarm_main, (void *)(intptr_t)getpid());
  lib.wait(handle);
  t_fail(__FILE__, __LINE__, "wait has returned");
}
static void child_handler_let_go(void) { in_handler(true); }
static void child_handler_stuck(void) { in_handler(false); }

static void *read_stuck(void *device) {
  lib.read(fd, device ? 0 : -1, stuck, 0, 4096, 0);
  return NULL;
}
static void child_reader_stuck(void) {
  pthread_t t;
  void *target;
  if (!begin()) return;
  CHECK_OK(lib.open(0), 0, "host");
  CHECK_OK(lib.regmem(0, stuck, T_PAGE, &target), 0, "host");
  if (getenv("DEVICE")) t_target_made(0, stuck, T_PAGE, target);
  const char *why = t_barrier_arm(&barrier, stuck, 4096);
  NEED(!why, "%s", why);
  pthread_create(&t, NULL, read_stuck, getenv("DEVICE"));
  CHECK(t_barrier_reached(&barrier), "the read stands");
  exit(7);
}

static void child_quick_exit(void) { /* _exit with all slots taken and nothing done */
  if (!begin()) return;
  if (!stand()) return;
  static phxfs_io_req_t q[15];
  for (int i = 0; i < 15; i++) {
    q[i] = one;
    if (!lib.submit_write(&q[i], 1)) t_fail(__FILE__, __LINE__, "batch %d", i);
  }
  if (getenv("SIG")) kill(getpid(), atoi(getenv("SIG")));
  else _exit(7);
  T_EVENTUALLY(false);
}

static pthread_key_t key;
static void exits(void *arg) { (void)arg, exit(7); }
static void *thread_with_data(void *arg) {
  (void)arg;
  one = (phxfs_io_req_t){fd, -1, stuck, 0, 4096, 0, 111};
  CHECK_OK(lib.read_batch(&one, 1), 0, "a thread that ends");
  pthread_setspecific(key, arg);
  return NULL;
}
static void child_destructor(void) {
  pthread_t t;
  if (!begin()) return;
  pthread_key_create(&key, exits);
  pthread_create(&t, NULL, thread_with_data, "x");
  pthread_join(t, NULL);
  for (;;) pause();
}

static atomic_int rounds;
static void *hammer(void *arg) {
  char *m = t_map(T_PAGE);
  (void)arg;
  for (;;) {
    void *target;
    phxfs_io_req_t q[4];
    for (int i = 0; i < 4; i++) q[i] = (phxfs_io_req_t){fd, -1, m, i * 4096, 4096, i * 4096, 0};
    int r = lib.read_batch(q, 4);
    if (r == -ESHUTDOWN) return NULL;
    if (r) t_fail(__FILE__, __LINE__, "read_batch gives %d", r);
    phxfs_batch_t *h = lib.submit_read(q, 4);
    if (h) lib.wait(h); /* -ESHUTDOWN: exit has begun */
    lib.read(fd, -1, m, 0, 4096, 0);
    if (lib.regmem(0, m, T_PAGE, &target) == 0) lib.deregmem(0, m, T_PAGE);
    rounds++;
  }
}
static void child_hammer(void) {
  pthread_t t;
  if (!begin()) return;
  CHECK_OK(lib.open(0), 0, "host");
  for (int i = 0; i < 8; i++) pthread_create(&t, NULL, hammer, NULL);
  T_EVENTUALLY(rounds > 50);
  exit(7);
}

/* Order: last in, first out, with ours registered at the first use. */
static void calls(const char *name, int want) {
  char text[64];
  phxfs_io_req_t q = {fd, -1, stuck, 0, 4096, 0, 111};
  CHECK_EQ(lib.read_batch(&q, 1), want, "%s", name);
  snprintf(text, sizeof text, "%s;", name);
  say(text);
}
static void first(void) { calls("before load", -ESHUTDOWN); }
static void second(void) { calls("after load", -ESHUTDOWN); }
static void third(void) { calls("after use", 0); }
__attribute__((destructor)) static void last(void) {
  if (getenv("T_CHILD") && !strcmp(getenv("T_CHILD"), "order")) calls("destructor", -ESHUTDOWN);
}
static void child_order(void) {
  atexit(first);
  if (!begin()) return;
  atexit(second);
  CHECK_OK(lib.find_dev(3), 3, "first use");
  atexit(third);
  CHECK_EQ(dlclose(lib.handle), 0, "closed"); /* must not run our handler now */
  CHECK_OK(lib.find_dev(3), 3, "after dlclose");
}

/* Is there a barrier here? Asked before a child is, whose skip comes too late. */
#define NEED_BARRIERS()                        \
  do {                                         \
    t_barrier t_b;                             \
    NEED_BARRIER(&t_b, t_map(T_PAGE), 4096);   \
    t_barrier_release(&t_b);                   \
  } while (0)

static int log_fd(void) { return memfd_create("log", 0); }

static char *text_of(int memfd) {
  static char text[4096];
  ssize_t n = pread(memfd, text, sizeof text - 1, 0);
  text[n < 0 ? 0 : n] = 0;
  return text;
}

static double ends(const char *entry, const char *const *env, int want, int err) {
  double begun = t_now();
  CHECK_EXIT(t_spawn(entry, env, -1, err), want, entry);
  return t_now() - begun;
}

static void handler_interrupts_a_wait(void) {
  NEED_BARRIERS();
  int err = log_fd();
  ends("handler_let_go", (const char *const[]){"PHXFS_LOG=error", NULL}, 7, err);
  CHECK(!strstr(text_of(err), "call=exit"), "exit has waited for the call that it interrupted: %s", text_of(err));
  close(err);
}

static void handler_interrupts_a_wait_without_end(void) {
  NEED_BARRIERS();
  int err = log_fd();
  double took = ends("handler_stuck", (const char *const[]){"PHXFS_LOG=error", NULL}, 7, err);
  CHECK(took < T_WAIT_SECONDS, "%.1f s", took);
  CHECK(strstr(text_of(err), "call=exit errno=ETIMEDOUT"), "log: %s", text_of(err));
  close(err);
}

static void stuck_reader(const char *device) {
  NEED_INJECT();
  NEED_BARRIERS();
  int err = log_fd();
  double took = ends("reader_stuck", (const char *const[]){T_INJECT_ENV, "PHX_EXIT_MS=700", "PHXFS_LOG=error", device, NULL}, 7, err);
  CHECK(took >= 0.7, "%.1f s: exit has not waited for the reader", took);
  CHECK(took < T_WAIT_SECONDS, "%.1f s", took);
  CHECK(strstr(text_of(err), "reason=\"after 0.7 s 0 async batches and 1 calls are unfinished\""), "log: %s", text_of(err));
  close(err);
}
static void a_reader_without_end_delays_exit_by_the_bound(void) { stuck_reader("A"); }
static void a_device_reader_without_end_delays_exit_by_the_bound(void) {
  HOST_ONLY("a registration that is busy to the end stays pinned, as it should");
  stuck_reader("DEVICE=0");
}

static void underscore_exit_does_not_wait(void) {
  NEED_BARRIERS();
  double took = ends("quick_exit", NULL, 7, -1);
  CHECK(took < T_WAIT_SECONDS, "%.1f s", took);
}

static void fatal_signals_do_not_wait(void) {
  NOT_ASAN();
  NEED_BARRIERS();
  for (int i = 0; i < 3; i++) {
    int sig = (const int[]){SIGTERM, SIGKILL, SIGABRT}[i];
    char text[16];
    snprintf(text, sizeof text, "SIG=%d", sig);
    double begun = t_now();
    int status = t_wait(t_spawn("quick_exit", (const char *const[]){text, NULL}, -1, -1));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == sig,
          "signal %d: status 0x%x", sig, status);
    CHECK(t_now() - begun < T_WAIT_SECONDS, "signal %d: %.1f s", sig, t_now() - begun);
  }
}

static void exit_in_a_destructor_of_thread_data(void) { ends("destructor", NULL, 7, -1); }
static void exit_while_threads_call(void) {
  for (int i = 0; i < 20 && !t_failed(); i++) ends("hammer", NULL, 7, -1);
}

static void handlers_run_in_order(void) {
  int out = log_fd();
  char env[32];
  int keep = dup(out);
  snprintf(env, sizeof env, "SAY_FD=%d", keep);
  ends("order", (const char *const[]){env, NULL}, 0, -1);
  CHECK(!strcmp(text_of(out), "after use;after load;before load;destructor;"), "ran: %s", text_of(out));
  close(out), close(keep);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(handler_interrupts_a_wait), T_CASE(handler_interrupts_a_wait_without_end),
    T_CASE(a_reader_without_end_delays_exit_by_the_bound), T_CASE(a_device_reader_without_end_delays_exit_by_the_bound),
    T_CASE(underscore_exit_does_not_wait), T_CASE(fatal_signals_do_not_wait),
    T_CASE(exit_in_a_destructor_of_thread_data), T_CASE(exit_while_threads_call), T_CASE(handlers_run_in_order),
  };
  static const t_case children[] = {
    {"handler_let_go", child_handler_let_go}, {"handler_stuck", child_handler_stuck}, {"reader_stuck", child_reader_stuck},
    {"quick_exit", child_quick_exit}, {"destructor", child_destructor}, {"hammer", child_hammer}, {"order", child_order}, {0}};
  return T_RUN(argc, argv, cases, children);
}
