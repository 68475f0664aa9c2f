/* What calls cost, in things that can be counted on any machine: system calls,
 * futex wakes, entries into Go, allocations; against a budget (call_budget.h).
 * Times are noisy, counts are not. The same counters must find what a test adds
 * to every call (plant), or they would find no regression either. */
#include "t_inject.h"

#include "call_budget.h"
#include "t_count.h"

#include <linux/futex.h>
#include <sys/syscall.h>

enum { MOST = 1024, BLOCK = 4096, WARM = 20, TRACED = T_COUNT_CALLS, CALLS = 200 };

static const char *const plants[] = {"nothing", "system call", "wake", "entry", "Go allocation", "C allocation"};
enum { PLANTED_ROWS = 3 };
enum plant { NOTHING, SYSTEM_CALL, WAKE, ENTRY, GO_ALLOCATION, C_ALLOCATION };

static struct t_api lib;
static struct t_injector inject;
static phxfs_io_req_t q[MOST];
static int fd;

/* ---- allocations of the library's C part: it finds these functions first ---- */
static _Atomic long mallocs;
#ifndef __SANITIZE_ADDRESS__
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t n) {
  mallocs++;
  return __libc_malloc(n);
}
void *calloc(size_t n, size_t each) {
  mallocs++;
  return __libc_calloc(n, each);
}
void *realloc(void *p, size_t n) {
  mallocs++;
  return __libc_realloc(p, n);
}
#endif

/* The budgets are those of the product, reaching memory directly. */
#define PRODUCT()                                          \
  NOT_ASAN();                                              \
  if (t_staged()) T_SKIP(NULL, "a run without host staging")

static bool ready(const char *engine) {
  void *target;
  t_use_host();
  setenv("PHXFS_WORKERS", "1", 1), setenv("PHXFS_IO_ENGINE", engine, 1);
  fd = t_file(MOST * BLOCK, 1);
  char *m = t_map(MOST * BLOCK);
  for (int i = 0; i < MOST; i++) q[i] = (phxfs_io_req_t){fd, 0, m + i * BLOCK, 0, BLOCK, (MOST - 1 - i) * BLOCK, 0}; /* no neighbours */
  CHECK_EQ(lib.open(0), 0, "host");
  CHECK_EQ(lib.regmem(0, m, MOST * BLOCK, &target), 0, "host");
  return !t_failed();
}

static void call(const struct budget *b, enum plant p) {
  static _Atomic uint32_t word;
  static void *volatile kept;
  uint64_t cycles, live, all;
  ssize_t r = -1;
  switch (b->call) {
  case READ: r = lib.read(fd, -1, q[0].buf, 0, BLOCK, 0) - BLOCK; break;
  case READ_REGISTERED: r = lib.read(fd, 0, q[0].buf, 0, BLOCK, 0) - BLOCK; break;
  case BATCH: r = lib.read_batch(q, b->n); break;
  case ASYNC: r = lib.wait(lib.submit_read(q, b->n)); break;
  }
  CHECK(r == 0, "%s: %zd", b->name, r);
  switch (p) {
  case NOTHING: break;
  case SYSTEM_CALL: syscall(SYS_getppid); break;
  case WAKE: syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); break;
  case ENTRY: lib.get_page_size(); break;
  case GO_ALLOCATION: inject.memory(&cycles, &live, &all); break;
  case C_ALLOCATION: kept = malloc(100), free(kept); break;
  }
}

/* ---- system calls, of the product ---- */
struct traced {
  const struct engine_budget *e;
  enum plant plant;
};

static void traced(void *arg) {
  const struct traced *c = arg;
  if (!t_load(&lib) || !ready(c->e->engine)) return;
  if (strcmp(lib.engine_name(), c->e->engine)) _exit(77);
  int rows = c->plant == NOTHING ? c->e->rows : PLANTED_ROWS;
  for (int row = 0; row < rows; row++) {
    for (int i = 0; i < WARM + TRACED; i++) {
      if (i >= WARM) t_count_begin(row);
      call(&c->e->budget[row], c->plant);
      if (i >= WARM) t_count_end();
    }
  }
}

static bool over(const struct budget *b, const struct t_calls *c) { return c->io > b->io || c->wakes > b->wakes || c->other > b->other; }

/* A row is over the budget if it is so in each of three counts. */
static void system_calls(const struct engine_budget *e, enum plant plant) {
  static struct t_tally t;
  static struct t_calls low[T_COUNT_ROWS];
  struct traced c = {e, plant};
  int refused, rows = plant == NOTHING ? e->rows : PLANTED_ROWS;
  for (int count = 0, again = 1; count < 3 && again; count++) {
    if (!t_count(traced, &c, &t, &refused)) {
      if (refused == 77) t_skip(__FILE__, __LINE__, "io_uring", "the %s engine", e->engine);
      else if (refused) t_skip(__FILE__, __LINE__, "ptrace", "a traced child: %s", strerror(refused));
      return;
    }
    again = 0;
    for (int row = 0; row < rows; row++) {
      struct t_calls got = t_count_low(&t, row);
      CHECK_EQ(t.n[row], TRACED, "measured calls of %s", e->budget[row].name);
      CHECK(got.io > 0, "%s: no system call that moves data", e->budget[row].name);
      if (count == 0 || over(&e->budget[row], &low[row])) low[row] = got;
      again |= over(&e->budget[row], &low[row]);
    }
  }
  for (int row = 0; row < rows; row++) {
    const struct budget *b = &e->budget[row];
    CHECK(over(b, &low[row]) == (plant != NOTHING),
          "%s, planted: %s: %d system calls that move data, at most %d; %d futex wakes, at most %d; %d others, at most %d", b->name,
          plants[plant], low[row].io, b->io, low[row].wakes, b->wakes, low[row].other, b->other);
  }
}

static void system_calls_io_uring(void) {
  PRODUCT();
  system_calls(&io_uring_budget, NOTHING);
}
static void system_calls_sync(void) {
  PRODUCT();
  system_calls(&sync_budget, NOTHING);
}
static void planted_system_calls_are_found(void) {
  PRODUCT();
  for (enum plant p = SYSTEM_CALL; p <= WAKE; p++) system_calls(&sync_budget, p);
}

/* ---- entries and allocations, of the test build ---- */
static void exact(void) {
  const struct engine_budget *e = strcmp(getenv("ENGINE"), "sync") ? &io_uring_budget : &sync_budget;
  enum plant plant = (enum plant)atoi(getenv("PLANT"));
  if (!t_load_inject(&lib, &inject) || !ready(e->engine)) return;
  for (int row = 0; row < e->rows && (plant == NOTHING || row < PLANTED_ROWS); row++) {
    const struct budget *b = &e->budget[row];
    uint64_t entries[2], objects[2];
    for (int i = 0; i < WARM; i++) call(b, plant);
    inject.counts(&entries[0], &objects[0]);
    long c = mallocs;
    for (int i = 0; i < CALLS; i++) call(b, plant);
    c = mallocs - c;
    inject.counts(&entries[1], &objects[1]);
    long in = (long)(entries[1] - entries[0]) - 1, go = (long)(objects[1] - objects[0]); /* counts is an entry itself */
    bool over = in > (long)b->entries * CALLS || go >= CALLS / 2 || c >= CALLS / 2;
    CHECK(over == (plant != NOTHING), "%s, planted: %s: in %d calls %ld entries, at most %d for each; %ld Go and %ld C allocations", b->name,
          plants[plant], CALLS, in, b->entries, go, c);
  }
}

static void exact_child(const char *engine, enum plant plant) {
  char e[32], p[32];
  NEED_INJECT();
  snprintf(e, sizeof e, "ENGINE=%s", engine), snprintf(p, sizeof p, "PLANT=%d", plant);
  RUN_CHILD("exact", T_INJECT_ENV, e, p);
}
static void entries_and_allocations_io_uring(void) {
  PRODUCT();
  exact_child("io_uring", NOTHING);
}
static void entries_and_allocations_sync(void) {
  PRODUCT();
  exact_child("sync", NOTHING);
}
static void planted_entries_and_allocations_are_found(void) {
  PRODUCT();
  for (enum plant p = ENTRY; p <= C_ALLOCATION; p++) exact_child("sync", p);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(system_calls_io_uring), T_CASE(system_calls_sync), T_CASE(planted_system_calls_are_found),
    T_CASE(entries_and_allocations_io_uring), T_CASE(entries_and_allocations_sync), T_CASE(planted_entries_and_allocations_are_found),
  };
  static const t_case children[] = {{"exact", exact}, {0}};
  return T_RUN(argc, argv, cases, children);
}
