/* Limits of threads and memory: what the library needs and cannot get is an
 * error that can be tried again, never the end of the process. */
#include "t_load.h"

#include <sys/resource.h>
#include <sys/wait.h>

static struct t_api lib;
static int fd; /* 4 MiB of pattern 1 */

/* Heavy enough for every helper. */
static int heavy(void) {
  char *b = t_map(4 << 20);
  phxfs_io_req_t q[64];
  for (int i = 0; i < 64; i++) q[i] = (phxfs_io_req_t){fd, -1, b, i * 65536, 65536, i * 65536, 0};
  int r = lib.read_batch(q, 64);
  if (r) return r;
  CHECK_DATA(b, 4 << 20, 1, 0, "heavy batch");
  for (int i = 0; i < 8; i++) CHECK_EQ(lib.read_batch(q, 64), 0, "heavy batch %d", i);
  phxfs_batch_t *h[8];
  for (int i = 0; i < 8; i++) CHECK(T_EVENTUALLY((h[i] = lib.submit_read(q, 64)) || errno != EBUSY), "%s", t_errno(errno));
  for (int i = 0; i < 8; i++) CHECK_EQ(lib.wait(h[i]), 0, "heavy async batch %d", i);
  t_unmap(b, 4 << 20);
  return 0;
}

/* A user of whom there is no other process, not even of a run of this test beside. */
static uid_t user(void) { return 20000 + (uid_t)getpid() % 40000; }

/* So many threads may this user have; errors before that are the test's own. */
static void child_threads(void) {
  struct rlimit l = {(rlim_t)atoi(getenv("THREADS")), (rlim_t)-1};
  t_use_host();
  fd = t_file(4 << 20, 1);
  if (!t_load(&lib)) return;
  getrlimit(RLIMIT_NPROC, &l);
  l.rlim_cur = (rlim_t)atoi(getenv("THREADS"));
  if (setrlimit(RLIMIT_NPROC, &l) || setuid(user())) _exit(3);
  int r = heavy();
  if (r == -EAGAIN) {
    CHECK_ERR(lib.open(0), -EAGAIN, EAGAIN, "again");
    CHECK_NULL(lib.engine_name(), EAGAIN, "again");
    l.rlim_cur = l.rlim_max;
    setrlimit(RLIMIT_NPROC, &l);
    CHECK_EQ(heavy(), 0, "with more threads");
    _exit(t_failed() ? 4 : 11);
  }
  CHECK_EQ(r, 0, "%s threads", getenv("THREADS"));
  _exit(t_failed() ? 4 : 0);
}

/* The limit comes later, when the library works already, and goes again. */
static atomic_int finished;
static void *heavy_thread(void *arg) {
  pthread_barrier_wait(arg);
  pthread_barrier_wait(arg);
  CHECK_EQ(heavy(), 0, "no more threads");
  finished++;
  return NULL;
}
static void child_threads_later(void) {
  struct rlimit l;
  pthread_barrier_t both;
  pthread_t t[16];
  t_use_host();
  fd = t_file(4 << 20, 1);
  if (!t_load(&lib)) return;
  CHECK_OK(lib.open(0), 0, "first call");
  pthread_barrier_init(&both, NULL, 17);
  for (int i = 0; i < 16; i++) pthread_create(&t[i], NULL, heavy_thread, &both);
  pthread_barrier_wait(&both);
  getrlimit(RLIMIT_NPROC, &l);
  l.rlim_cur = 1;
  if (setrlimit(RLIMIT_NPROC, &l) || setuid(user())) _exit(3);
  pthread_t none;
  CHECK(pthread_create(&none, NULL, heavy_thread, NULL) == EAGAIN, "the limit is reached");
  pthread_barrier_wait(&both);
  for (double end = t_now() + 2; finished < 16 && t_now() < end;) sched_yield();
  l.rlim_cur = l.rlim_max;
  if (setrlimit(RLIMIT_NPROC, &l)) _exit(3);
  for (int i = 0; i < 16; i++) pthread_join(t[i], NULL);
}
static void no_more_threads_for_a_while(void) {
  if (geteuid()) T_SKIP("root", "root, to become a user with no other threads");
  for (int i = 0; i < 3; i++) RUN_CHILD("threads_later", NULL);
}

static void too_few_threads_is_eagain(void) {
  NOT_ASAN();
  if (geteuid()) T_SKIP("root", "root, to become a user with no other threads");
  static const int limits[] = {1, 2, 9, 12, 16, 20, 21, 22, 23, 24, 25, 26, 30, 36, 37, 38, 60};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    for (int workers = 0; workers < 2; workers++) {
      int k = limits[i];
      char n[32], w[32];
      snprintf(n, sizeof n, "THREADS=%d", k), snprintf(w, sizeof w, workers ? "PHXFS_WORKERS=16" : "PHXFS_WORKERS");
      int err = memfd_create("stderr", MFD_CLOEXEC);
      int status = t_wait(t_spawn("threads", (const char *const[]){n, w, NULL}, -1, err));
      int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      char text[300] = "";
      if (pread(err, text, sizeof text - 1, 0) < 0) abort();
      close(err);
      /* This one, 20 for the runtime, and 1 to 4 or 16 helpers. */
      bool may_work = k > (workers ? 36 : 21), must_work = k > (workers ? 36 : 24);
      CHECK((code == 0 && may_work) || (code == 11 && !must_work), "%s %s: status 0x%x, stderr %s", n, w, status, text);
    }
}

/* Staging wants threads for each device, and the first transfers start them: room
 * for all of them is open's to find, or there is none and nobody waits for it. */
static atomic_int opened;
static pthread_barrier_t opens;
static void *staged_thread(void *arg) {
  int id = (int)(intptr_t)arg;
  char *m = t_map(4 << 20);
  void *target;
  phxfs_io_req_t q[64];
  for (int i = 0; i < 64; i++) q[i] = (phxfs_io_req_t){fd, id, m, i * 65536, 65536, i * 65536, 0};
  pthread_barrier_wait(&opens);
  if (id < opened) {
    CHECK_OK(lib.regmem(id, m, 4 << 20, &target), 0, "device %d", id);
    for (int i = 0; i < 4; i++) CHECK_EQ(lib.read_batch(q, 64), 0, "device %d", id);
    CHECK_DATA(m, 4 << 20, 1, 0, "device %d", id);
    CHECK_OK(lib.deregmem(id, m, 4 << 20), 0, "device %d", id);
  }
  t_unmap(m, 4 << 20);
  return NULL;
}

static void child_staging_threads(void) {
  struct rlimit l;
  pthread_t t[8];
  fd = t_file(4 << 20, 1);
  if (!t_load(&lib)) return;
  getrlimit(RLIMIT_NPROC, &l);
  l.rlim_cur = (rlim_t)atoi(getenv("THREADS"));
  if (setuid(user())) _exit(3);
  pthread_barrier_init(&opens, NULL, 9);
  for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, staged_thread, (void *)(intptr_t)i);
  if (setrlimit(RLIMIT_NPROC, &l)) _exit(3);
  for (int r = 0; opened < 8; opened++)
    if ((r = lib.open(opened))) {
      int eno = errno;
      CHECK(eno == EAGAIN && (r == -1 || r == -EAGAIN), "device %d: %d, %s", opened, r, t_errno(eno));
      break;
    }
  pthread_barrier_wait(&opens);
  for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
  l.rlim_cur = l.rlim_max;
  setrlimit(RLIMIT_NPROC, &l);
  for (int i = opened; i < 8; i++) CHECK_OK(lib.open(i), 0, "device %d, with more threads", i);
  _exit(t_failed() ? 40 : opened);
}

static void too_few_threads_for_staging_is_eagain(void) {
  NOT_ASAN();
  if (geteuid()) T_SKIP("root", "root, to become a user with no other threads");
  /* 9 of the test, 20 of the runtime, 1 to 4 helpers, 4 for each device; and some that end. */
  static const int limits[] = {29, 36, 42, 48, 54, 60, 66, 200};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    char n[32];
    snprintf(n, sizeof n, "THREADS=%d", limits[i]);
    int status = t_wait(t_spawn("staging_threads", (const char *const[]){n, "PHXFS_VENDOR=HOST", "PHXFS_MODE=host_staging", NULL}, -1, -1));
    int devices = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    CHECK(devices >= 0 && devices <= 8, "%s: status 0x%x", n, status);
    CHECK(limits[i] < 200 || devices == 8, "%s: %d devices", n, devices);
  }
}

/* Each limit of address space: ENOMEM or everything, nothing in between. */
static void child_space(void) {
  struct rlimit l = {(rlim_t)atol(getenv("MIB")) << 20, RLIM_INFINITY};
  t_use_host();
  fd = t_file(4 << 20, 1);
  if (!t_load(&lib) || setrlimit(RLIMIT_AS, &l)) _exit(3);
  int r = heavy();
  if (r == -ENOMEM) {
    char b[4096];
    CHECK_OK(lib.read(fd, -1, b, 0, 4096, 0), 4096, "plain C");
    l.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_AS, &l);
    CHECK_EQ(heavy(), 0, "with more room");
    _exit(t_failed() ? 4 : 11);
  }
  CHECK_EQ(r, 0, "%s MiB", getenv("MIB"));
  _exit(t_failed() ? 4 : 0);
}

static void too_little_address_space_is_enomem(void) {
  NOT_ASAN();
  int refused = 0, worked = 0;
  for (int mib = 100; mib <= 4100; mib += mib > 1950 && mib < 2550 ? 50 : 300) {
    char n[32], text[300] = "";
    snprintf(n, sizeof n, "MIB=%d", mib);
    int err = memfd_create("stderr", MFD_CLOEXEC);
    int status = t_wait(t_spawn("space", (const char *const[]){n, NULL}, -1, err));
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (pread(err, text, sizeof text - 1, 0) < 0) abort();
    close(err);
    refused += code == 11, worked += code == 0;
    CHECK(code == 0 || code == 11, "%s: status 0x%x, stderr %s", n, status, text);
  }
  CHECK(refused > 0 && worked > 0, "%d refused, %d worked", refused, worked);
}

static void child_memlock(void) {
  struct rlimit l = {64 << 10, 64 << 10};
  t_use_host();
  fd = t_file(4 << 20, 1);
  setrlimit(RLIMIT_MEMLOCK, &l);
  if (!geteuid() && setuid(user())) _exit(3); /* root is not limited */
  if (!t_load(&lib)) return;
  const char *name = lib.engine_name();
  CHECK(name && (!strcmp(name, "sync") || !strcmp(name, "io_uring")), "engine %s", name);
  CHECK_EQ(heavy(), 0, "64 KiB of locked memory");
}
static void locked_memory_of_64_kib(void) {
  if (access(t_lib(), R_OK)) T_SKIP("library", "%s", t_lib());
  RUN_CHILD("memlock", NULL);
}

/* The smallest stack a thread may have, with everything that a call can need:
 * the first call of all, a batch with helpers, a failure and its line. */
static void *on_small_stack(void *arg) {
  phxfs_io_req_t q[2] = {{fd, -1, arg, 0, 4096, 0, 0}, {-1, -1, arg, 0, 4096, 0, 0}};
  void *target;
  CHECK_OK(lib.read_batch(q, 2), 1, "one of two fails");
  phxfs_batch_t *h;
  CHECK(T_EVENTUALLY((h = lib.submit_read(q, 2)) || errno != EBUSY), "%s", t_errno(errno));
  CHECK_OK(lib.wait(h), 1, "one of two fails, async");
  CHECK_ERR(lib.open(99), -1, EINVAL, "a line");
  CHECK_ERR(lib.read(-1, -1, arg, 0, 4096, 0), -EBADF, EBADF, "a line");
  CHECK_ERR(lib.regmem(0, (char *)arg + 1, T_PAGE, &target), -EINVAL, EINVAL, "a line");
  return NULL;
}
/* The C library takes thread-local memory from the stack: this harness's is 64
 * KiB, a plain program's next to nothing. */
static const size_t t_tls = 64 << 10;
static void child_small_stack(void) {
  pthread_attr_t a;
  char *m = t_map(T_PAGE);
  int n = atoi(getenv("AT_ONCE"));
  pthread_t t[64];
  t_use_host();
  fd = t_file(4 << 20, 1);
  if (!t_load(&lib)) return;
  pthread_attr_init(&a);
  CHECK_EQ(pthread_attr_setstacksize(&a, (size_t)sysconf(_SC_THREAD_STACK_MIN) + t_tls), 0, "size");
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < n; i++) CHECK_EQ(pthread_create(&t[i], &a, on_small_stack, m), 0, "thread");
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
  }
}
static void smallest_stack(void) {
  NOT_ASAN();
  RUN_CHILD("small_stack", "AT_ONCE=1", "PHXFS_LOG=debug", "PHXFS_LOG_FILE=log");
  RUN_CHILD("small_stack", "AT_ONCE=64", "PHXFS_LOG=debug", "PHXFS_LOG_FILE=log");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(too_few_threads_is_eagain), T_CASE(too_few_threads_for_staging_is_eagain), T_CASE(no_more_threads_for_a_while), T_CASE(too_little_address_space_is_enomem), T_CASE(locked_memory_of_64_kib), T_CASE(smallest_stack),
  };
  static const t_case children[] = {{"threads", child_threads}, {"threads_later", child_threads_later}, {"staging_threads", child_staging_threads}, {"space", child_space}, {"memlock", child_memlock}, {"small_stack", child_small_stack}, {0}};
  return T_RUN(argc, argv, cases, children);
}
