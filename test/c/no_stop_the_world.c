/* In steady state Go's collector does not run, so that the world is never
 * stopped (docs/architecture.md), and its heap does not grow: over requests,
 * registrations, and threads that come, call and go. PHX_FULL=1: 10^7 requests,
 * 10^5 registrations, 10^4 threads; otherwise a hundredth of that. */
#include "t_inject.h"

#include <signal.h>

static struct t_api lib;
static struct t_injector inject;
static int fd;
static long scale = 1; /* 100: the full numbers */

static uint64_t heap(const char *after) {
  uint64_t cycles, live, all;
  inject.memory(&cycles, &live, &all);
  CHECK_EQ(cycles, 0, "collections after %s", after);
  return live;
}

enum { N = 50 };
static void requests(long how_many) {
  static char m[N * 512];
  phxfs_io_req_t q[N];
  for (int i = 0; i < N; i++) q[i] = (phxfs_io_req_t){fd, -1, m, i * 512, 512, i * 512, 0};
  for (long done = 0; done < how_many && !t_failed(); done += 2 * N + 2) {
    CHECK_EQ(lib.read_batch(q, N), 0, "sync");
    CHECK_EQ(lib.wait(lib.submit_read(q, N)), 0, "async");
    CHECK_EQ(lib.read_batch(q, 1), 0, "one");
    CHECK_EQ(lib.read(fd, -1, m, 0, 512, 0), 512, "single");
  }
}

static void registrations(long how_many) {
  char *m = t_map(64 * T_PAGE);
  void *target;
  for (long done = 0; done < how_many && !t_failed(); done += 64) {
    for (int i = 0; i < 64; i++) CHECK_EQ(lib.regmem(0, m + i * T_PAGE, T_PAGE, &target), 0, "regmem");
    CHECK_EQ(lib.read(fd, 0, m + 63 * T_PAGE, 0, 512, 0), 512, "registered");
    for (int i = 0; i < 64; i++) CHECK_EQ(lib.deregmem(0, m + i * T_PAGE, T_PAGE), 0, "deregmem");
  }
  t_unmap(m, 64 * T_PAGE);
}

static void *one_thread(void *arg) {
  char b[512];
  phxfs_io_req_t q = {fd, -1, b, 0, 512, 0, 0};
  CHECK_EQ(lib.read_batch(&q, 1), 0, "a short-lived thread");
  return arg;
}
static void threads(long how_many) {
  pthread_t t[20];
  for (long done = 0; done < how_many && !t_failed(); done += 20) {
    for (int i = 0; i < 20; i++) pthread_create(&t[i], NULL, one_thread, NULL);
    for (int i = 0; i < 20; i++) pthread_join(t[i], NULL);
  }
}

static void story(void) {
  t_use_host();
  if (getenv("PHX_FULL")) scale = 100, alarm(0);
  fd = t_file(N * 512, 1);
  if (!t_load_inject(&lib, &inject)) return;
  CHECK_OK(lib.open(0), 0, "host");
  requests(5000), registrations(640), threads(200); /* tables grow to their size */
  uint64_t before = heap("warming up");
  requests(100000 * scale);
  uint64_t r = heap("requests");
  registrations(1000 * scale);
  uint64_t g = heap("registrations");
  threads(100 * scale);
  uint64_t t = heap("threads");
  printf("# heap %llu KiB, after requests +%lld, registrations +%lld, threads +%lld bytes\n", (unsigned long long)before >> 10,
         (long long)(r - before), (long long)(g - r), (long long)(t - g));
  fflush(stdout);
  /* What may come: another P's or thread's caches. Not something per request. */
  CHECK(r <= before + (64 << 10), "the heap grew by %lld bytes over %ld requests", (long long)(r - before), 100000 * scale);
  CHECK(g <= r + (64 << 10), "the heap grew by %lld bytes over %ld registrations", (long long)(g - r), 1000 * scale);
  CHECK(t <= g + (256 << 10), "the heap grew by %lld bytes over %ld threads", (long long)(t - g), 100 * scale);
}

/* All at once: what they need stays far below the limit at which Go collects. */
enum { MANY = 2000 };
static sem_t up, down;
static void *waits(void *arg) {
  one_thread(arg);
  sem_post(&up), sem_wait(&down);
  one_thread(arg);
  return NULL;
}
static void many(void) {
  static pthread_t t[MANY];
  pthread_attr_t small;
  int n = 0;
  t_use_host();
  fd = t_file(N * 512, 1);
  if (!t_load_inject(&lib, &inject)) return;
  sem_init(&up, 0, 0), sem_init(&down, 0, 0);
  pthread_attr_init(&small), pthread_attr_setstacksize(&small, 128 << 10);
  while (n < MANY && pthread_create(&t[n], &small, waits, NULL) == 0) n++;
  for (int i = 0; i < n; i++) sem_wait(&up);
  heap("2000 threads at once");
  for (int i = 0; i < n; i++) sem_post(&down);
  for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
  heap("2000 threads gone");
  CHECK(n == MANY, "only %d threads can be made here", n);
}

static void no_collection_and_a_flat_heap(void) {
  NOT_ASAN();
  NEED_INJECT();
  if (getenv("PHX_FULL")) alarm(0); /* minutes; test/soak.sh runs it */
  RUN_CHILD("story", T_INJECT_ENV);
}
static void two_thousand_callers_at_once(void) {
  NEED_INJECT();
  RUN_CHILD("many", T_INJECT_ENV);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(no_collection_and_a_flat_heap), T_CASE(two_thousand_callers_at_once)};
  static const t_case children[] = {{"story", story}, {"many", many}, {0}};
  return T_RUN(argc, argv, cases, children);
}
