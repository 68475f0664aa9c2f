/* cores SECONDS [THREADS] - every call of the library from many threads at once,
 * by the clock: threads that call all the time, threads that register and
 * deregister, threads that live for one call. Prints
 *   calls=N threads=N slowest=MILLISECONDS call=NAME wrong=N
 * Exit status 1: a call took longer than 3 s, or something was wrong. THREADS: that
 * many of each of the three kinds; default: one for each two processors, at least 2.
 * A stall of 120 s (docs/architecture.md) is waited out and counted; a program that is
 * not done 150 s after its time says so and ends. */
#include <phoenix.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { PAGE = 65536, BLOCK = 4096, BLOCKS = 64, MOST = 256 };
static const uint64_t LIMIT_NS = 3000000000u;

static atomic_bool over;
static atomic_ulong calls, made, wrong;
static _Atomic uint64_t slowest; /* ns << 8 | index in names */
static const char *const names[] = {"read_batch", "submit", "wait", "read", "open", "regmem", "deregmem", "close", "find_dev", "engine_name", "first read_batch of a thread"};
enum { READ_BATCH, SUBMIT, WAIT, READ, OPEN, REGMEM, DEREGMEM, CLOSE, FIND_DEV, ENGINE_NAME, FIRST };
static int fd;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void took(int name, uint64_t ns) {
  uint64_t it = ns << 8 | (uint64_t)name, most = atomic_load(&slowest);
  while (it > most && !atomic_compare_exchange_weak(&slowest, &most, it)) {
  }
  atomic_fetch_add(&calls, 1);
}

#define TIMED(name, call)                \
  __extension__({                        \
    uint64_t t_ = now();                 \
    __typeof__(call) r_ = (call);        \
    took(name, now() - t_);              \
    r_;                                  \
  })

static void must(bool ok, const char *what) {
  if (!ok && atomic_fetch_add(&wrong, 1) < 10) fprintf(stderr, "cores: %s: %s\n", what, strerror(errno));
}

/* Block i of the file is filled with i; what lay in memory before is not. */
static void right(const unsigned char *m, int n, const phxfs_io_req_t *q) {
  for (int i = 0; i < n; i++) {
    const unsigned char *b = m + i * BLOCK;
    unsigned char want = (unsigned char)(q[i].f_offset / BLOCK);
    must(b[0] == want && b[BLOCK - 1] == want && q[i].result == BLOCK, "wrong bytes");
  }
}

static int requests(phxfs_io_req_t *q, unsigned char *m, int device, unsigned *seed) {
  int n = (int[]){1, 2, 16, BLOCKS}[rand_r(seed) % 4];
  memset(m, 255, (size_t)n * BLOCK);
  for (int i = 0; i < n; i++) q[i] = (phxfs_io_req_t){fd, device, m, i * BLOCK, BLOCK, (off_t)(rand_r(seed) % BLOCKS) * BLOCK, 0};
  return n;
}

static void read_all(unsigned char *m, int device, unsigned *seed) {
  phxfs_io_req_t q[BLOCKS];
  phxfs_batch_t *h = NULL;
  int n = requests(q, m, device, seed);
  must(TIMED(READ_BATCH, phxfs_read_batch(q, n)) == 0, "read_batch");
  right(m, n, q);
  n = requests(q, m, device, seed);
  while (!(h = TIMED(SUBMIT, phxfs_batch_submit_read(q, n))) && errno == EBUSY) sched_yield();
  must(h && TIMED(WAIT, phxfs_batch_wait(h)) == 0, "an async batch");
  if (h) right(m, n, q);
  must(TIMED(READ, phxfs_read(fd, device, m, 0, BLOCK, BLOCK)) == BLOCK && m[5] == 1, "read");
}

static void *memory(void) {
  void *m = NULL;
  if (posix_memalign(&m, PAGE, BLOCKS * BLOCK)) abort();
  return m;
}

static void *caller(void *arg) {
  unsigned seed = (unsigned)(uintptr_t)arg;
  unsigned char *m = memory();
  while (!over) read_all(m, -1, &seed);
  free(m);
  return NULL;
}

static void *registrar(void *arg) {
  unsigned seed = (unsigned)(uintptr_t)arg;
  int device = (int)(seed % 8);
  unsigned char *m = memory();
  while (!over) {
    void *target;
    int r;
    while ((r = TIMED(OPEN, phxfs_open(device))) == -EBUSY) sched_yield(); /* another's last close */
    must(r == 0, "open");
    must(TIMED(REGMEM, phxfs_regmem(device, m, BLOCKS * BLOCK, &target)) == 0, "regmem");
    read_all(m, device, &seed);
    must(TIMED(DEREGMEM, phxfs_deregmem(device, m, BLOCKS * BLOCK)) == 0, "deregmem");
    must(TIMED(CLOSE, phxfs_close(device)) == 0, "close");
    must(TIMED(FIND_DEV, phxfs_find_dev(device)) == device, "find_dev");
  }
  free(m);
  return NULL;
}

static void *mayfly(void *arg) {
  unsigned char m[2 * BLOCK];
  phxfs_io_req_t q[2] = {{fd, -1, m, 0, BLOCK, 3 * BLOCK, 0}, {fd, -1, m, BLOCK, BLOCK, 7 * BLOCK, 0}};
  must(TIMED(FIRST, phxfs_read_batch(q, 2)) == 0, "a thread's first read_batch");
  right(m, 2, q);
  must(TIMED(ENGINE_NAME, phxfs_io_engine_name()) != NULL, "engine_name");
  return arg;
}

static void *breeder(void *arg) {
  while (!over) {
    pthread_t t[4];
    int n = 0;
    while (n < 4 && !pthread_create(&t[n], NULL, mayfly, NULL)) n++;
    atomic_fetch_add(&made, (unsigned)n);
    while (n > 0) pthread_join(t[--n], NULL);
  }
  return arg;
}

static void late(int sig) {
  static const char text[] = "cores: a call hangs\n";
  (void)sig;
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(4);
  _exit(3);
}

static int data(void) {
  unsigned char b[BLOCK];
  int f = memfd_create("cores", MFD_CLOEXEC);
  for (int i = 0; i < BLOCKS; i++) {
    memset(b, i, sizeof b);
    if (pwrite(f, b, sizeof b, (off_t)i * BLOCK) != sizeof b) abort();
  }
  return f;
}

int main(int argc, char **argv) {
  static void *(*const kinds[])(void *) = {caller, registrar, breeder};
  pthread_t t[3 * MOST];
  int seconds = argc > 1 ? atoi(argv[1]) : 0, each = argc > 2 ? atoi(argv[2]) : (int)sysconf(_SC_NPROCESSORS_ONLN) / 2, n = 0;
  if (seconds < 1 || each > MOST) return fprintf(stderr, "usage: cores SECONDS [THREADS]\n"), 2;
  if (each < 2) each = 2;
  setenv("PHXFS_VENDOR", "HOST", 1);
  fd = data();
  signal(SIGALRM, late), alarm((unsigned)seconds + 150);
  for (int i = 0; i < 3 * each; i++)
    if (!pthread_create(&t[n], NULL, kinds[i % 3], (void *)(uintptr_t)(i + 1))) n++;
  must(n == 3 * each, "threads");
  sleep((unsigned)seconds);
  over = true;
  while (n > 0) pthread_join(t[--n], NULL);
  uint64_t most = slowest;
  printf("calls=%lu threads=%lu slowest=%llu call=%s wrong=%lu\n", calls, made + 3 * (unsigned long)each, (unsigned long long)((most >> 8) / 1000000),
         names[most & 255], wrong);
  fflush(stdout);
  return (most >> 8) > LIMIT_NS || wrong;
}
