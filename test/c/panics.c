/* A panic inside the library is an error of that call: it returns the value of
 * its contract with EIO, and what comes after it works. In the test build every
 * call, and everything that calls use, panics when it is told to. */
#include "t_inject.h"

static struct t_api lib;
static struct t_injector inject;
static int fd; /* 1 MiB of pattern 1 */
static char *m, *w;

enum { REQS = 64 };
static phxfs_io_req_t q[REQS];
static phxfs_io_req_t *requests(int n, int device) {
  for (int i = 0; i < n; i++) q[i] = (phxfs_io_req_t){fd, device, m, i * 4096, 4096, i * 4096, 111};
  return q;
}

/* Everything once; nothing may be left from whatever came before. */
static void all_is_well(const char *after) {
  void *target;
  memset(t_host(m), 0, REQS * 4096);
  CHECK_OK(lib.read_batch(requests(REQS, 0), REQS), 0, "after %s", after);
  CHECK_DATA(m, REQS * 4096, 1, 0, "after %s", after);
  phxfs_batch_t *h[16];
  static phxfs_io_req_t r[16];
  for (int i = 0; i < 16; i++) { /* all slots are there; tickets are not stuck */
    r[i] = *requests(1, 0);
    CHECK(T_EVENTUALLY((h[i] = lib.submit_read(&r[i], 1)) || errno != EBUSY), "after %s, slot %d: %s", after, i, t_errno(errno));
  }
  for (int i = 0; i < 16; i++) CHECK_OK(lib.wait(h[i]), 0, "after %s, batch %d", after, i);
  CHECK_OK(lib.read(fd, 0, m, 0, 4096, 4096), 4096, "after %s", after);
  CHECK_OK(lib.regmem(0, w, T_PAGE, &target), 0, "after %s", after);
  CHECK_OK(lib.deregmem(0, w, T_PAGE), 0, "after %s", after);
  CHECK_OK(lib.open(1), 0, "after %s", after);
  CHECK_OK(lib.close(1), 0, "after %s", after);
  CHECK_OK(lib.find_dev(4), 4, "after %s", after);
  CHECK_OK(lib.get_page_size(), 65536, "after %s", after);
  CHECK(lib.engine_name() != NULL, "after %s", after);
}

#define PANICS(place, call, want)                                       \
  do {                                                                  \
    inject.arm(place, 1);                                               \
    CHECK_ERR(call, want, EIO, "panic at %s", #place);                  \
    CHECK_EQ(inject.left(place), 0, "panics left at %s", #place);       \
    all_is_well(#place);                                                \
  } while (0)

static bool begin(void) {
  t_use_host();
  fd = t_file(1 << 20, 1), m = t_map(16 * T_PAGE), w = t_map(T_PAGE);
  void *target;
  if (!t_load_inject(&lib, &inject)) return false;
  CHECK_OK(lib.open(0), 0, "host");
  CHECK_OK(lib.regmem(0, m, 16 * T_PAGE, &target), 0, "host");
  t_target_made(0, m, 16 * T_PAGE, target);
  return !t_failed();
}

static void child_calls(void) {
  void *target = (void *)0x5a;
  if (!begin()) return;
  all_is_well("nothing");
  for (int round = 0; round < 20 && !t_failed(); round++) {
    PANICS(PHX_IN_OPEN, lib.open(1), -1);
    PANICS(PHX_IN_CLOSE, lib.close(0), -1);
    PANICS(PHX_IN_PAGE_SIZE, lib.get_page_size(), 65536);
    PANICS(PHX_IN_FIND_DEV, lib.find_dev(0), -1);
    PANICS(PHX_IN_MAP_MODE, lib.get_map_mode(0), -EIO);
    PANICS(PHX_IN_REGMEM, lib.regmem(0, w, T_PAGE, &target), -EIO);
    PANICS(PHX_IN_DEREGMEM, lib.deregmem(0, m, 16 * T_PAGE), -1);
    PANICS(PHX_IN_TRANSFER, lib.read(fd, 0, m, 0, 16, 0), -EIO);
    PANICS(PHX_IN_BATCH, lib.read_batch(requests(4, 0), 4), -EIO);
    PANICS(PHX_IN_BATCH, lib.write_batch(requests(4, 0), 4), -EIO);
    PANICS(PHX_IN_SUBMIT, (intptr_t)lib.submit_read(requests(4, 0), 4), 0);
    PANICS(PHX_IN_SUBMIT, (intptr_t)lib.submit_write(requests(4, 0), 4), 0);
    CHECK_EQ((intptr_t)target, 0x5a, "*target_addr");
    phxfs_io_req_t r = {fd, 0, m, 0, 4096, 0, 111};
    phxfs_batch_t *h = lib.submit_read(&r, 1);
    PANICS(PHX_IN_WAIT, lib.wait(h), -EIO); /* before it looked at the handle */
    CHECK_OK(lib.wait(h), 0, "the handle is not lost");
    h = lib.submit_read(&r, 1);
    PANICS(PHX_IN_DESTROY, lib.destroy(h), -EIO);
    CHECK_OK(lib.destroy(h), 0, "the handle is not lost");
    inject.arm(PHX_IN_ENGINE_NAME, 1);
    errno = 0;
    const char *name = lib.engine_name();
    CHECK(errno == EIO && name, "engine_name: %s, %s", name, t_errno(errno));
    /* Logging a plain read that failed: the call's own value stays. */
    inject.arm(PHX_IN_SINGLE_SHORT, 1);
    CHECK_ERR(lib.read(-1, -1, m, 0, 16, 0), -EBADF, EBADF, "panic while it is logged");
    inject.arm(PHX_IN_SINGLE_SHORT, 0);
    all_is_well("single_short");
  }
  CHECK_OK(lib.deregmem(0, m, 16 * T_PAGE), 0, "no gate is left closed or entered");
  CHECK_OK(lib.close(0), 0, "the end");
}

/* In a transfer: that request fails with EIO, on whichever thread it was. */
static void child_io(void) {
  if (!begin()) return;
  for (int round = 0; round < 100 && !t_failed(); round++) {
    for (int device = -1; device <= 0; device++)
      for (int async = 0; async < 2; async++) {
        int n = (const int[]){1, 2, 8, REQS}[round % 4], times = 1 + round % 3, bad = 0;
        requests(n, device);
        inject.arm(PHX_IN_IO, times);
        int r = async ? lib.wait(lib.submit_read(q, n)) : lib.read_batch(q, n);
        inject.arm(PHX_IN_IO, 0);
        for (int i = 0; i < n; i++) {
          CHECK(q[i].result == 4096 || q[i].result == -EIO, "request %d of %d: %zd", i, n, q[i].result);
          bad += q[i].result != 4096;
        }
        CHECK(r == bad && bad > 0, "%d failed, the call says %d, n %d async %d", bad, r, n, async);
        inject.arm(PHX_IN_ASYNC, async);
        if (async) CHECK_OK(lib.wait(lib.submit_read(requests(2, device), 2)), 0, "a panic where batches are counted");
        inject.arm(PHX_IN_ASYNC, 0);
        all_is_well("io");
      }
    PANICS(PHX_IN_IO, lib.read(fd, 0, m, 0, 4096, 0), -EIO);
    PANICS(PHX_IN_IO, lib.write(fd, 0, m, 0, 0, 0) + lib.read(fd, 0, m, 0, 16, 0), -EIO);
  }
  CHECK_OK(lib.deregmem(0, m, 16 * T_PAGE), 0, "no gate is left");
  CHECK_OK(lib.close(0), 0, "the end");
}

/* In the log: the line is lost, the call is not. */
static void child_log(void) {
  void *target;
  if (!begin()) return;
  for (int round = 0; round < 20 && !t_failed(); round++) {
    inject.arm(PHX_IN_LOG, 1 << 20);
    all_is_well("log");
    CHECK_ERR(lib.open(99), -1, EINVAL, "a failure nobody can log");
    CHECK_ERR(lib.regmem(0, w + 1, T_PAGE, &target), -EINVAL, EINVAL, "a failure nobody can log");
    q[0] = (phxfs_io_req_t){-1, 0, m, 0, 16, 0, 0}, q[1] = (phxfs_io_req_t){fd, 0, w, 0, 16, 0, 0};
    CHECK_OK(lib.read_batch(q, 2), 2, "two failures nobody can log");
    CHECK_OK(lib.wait(lib.submit_read(q, 2)), 2, "two failures nobody can log");
    inject.arm(PHX_IN_OPEN, 1);
    CHECK_ERR(lib.open(1), -1, EIO, "a panic nobody can log");
    inject.arm(PHX_IN_LOG, 0);
    all_is_well("log");
  }
  CHECK_OK(lib.deregmem(0, m, 16 * T_PAGE), 0, "no gate is left");
}

/* In the table of live registrations, in the middle of calls. */
static void child_table(void) {
  void *target;
  if (!begin()) return;
  for (int round = 0; round < 70 && !t_failed(); round++) { /* a slot's first use takes a pin */
    char *p = t_map(T_PAGE);
    inject.arm(PHX_IN_TAKE, 1);
    int r = lib.regmem(0, p, T_PAGE, &target);
    CHECK(r == 0 || (r == -EIO && errno == EIO), "regmem gives %d", r);
    inject.arm(PHX_IN_TAKE, 0);
    if (r) CHECK_OK(lib.regmem(0, p, T_PAGE, &target), 0, "again");
  }
  CHECK_OK(lib.close(0), 0, "everything");
}

static void child_start(void) { /* the first call of the process */
  t_use_host();
  if (!t_load_inject(&lib, &inject)) return;
  inject.arm(PHX_IN_START, 1);
  CHECK_ERR(lib.open(0), -EIO, EIO, "panic at the start");
  int r = lib.open(0);
  CHECK(r == 0 || r == -ENOSYS || r == -EIO, "the second call gives %d", r);
  char b[16];
  CHECK_OK(lib.read(t_file(16, 1), -1, b, 0, 16, 0), 16, "plain C goes on");
}

static void *first_call(void *arg) {
  (void)arg;
  inject.arm(PHX_IN_SETTLE, 1);
  CHECK_OK(lib.find_dev(2), 2, "a panic while a thread is made known");
  CHECK_EQ(inject.left(PHX_IN_SETTLE), 0, "hit");
  CHECK_OK(lib.find_dev(2), 2, "again");
  return NULL;
}
static void child_engine(void) {
  t_use_host();
  fd = t_file(1 << 20, 1), m = t_map(16 * T_PAGE), w = t_map(T_PAGE);
  if (!t_load_inject(&lib, &inject)) return;
  CHECK_OK(lib.find_dev(2), 2, "start");
  for (int i = 0; i < 3; i++) {
    inject.arm(PHX_IN_ENGINE, 1);
    CHECK_ERR(lib.read_batch(requests(4, -1), 4), -EIO, EIO, "while the engine is made");
    inject.arm(PHX_IN_ENGINE, 1);
    CHECK_NULL(lib.submit_read(requests(4, -1), 4), EIO, "while the engine is made");
  }
  CHECK_OK(lib.read_batch(requests(4, -1), 4), 0, "then it is made");
#ifdef __SANITIZE_ADDRESS__ /* it does not tell a thread's first call */
  return;
#endif
  for (int i = 0; i < 10; i++) {
    pthread_t t;
    pthread_create(&t, NULL, first_call, NULL);
    pthread_join(t, NULL);
  }
}

/* A panic between a ring's calls is engine/uring_break_test.go's; here it comes in
 * the system calls themselves, which only the sync engine makes. */
static void story(const char *entry) {
  NEED_INJECT();
  for (int log = 0; log < 2; log++)
    RUN_CHILD(entry, T_INJECT_ENV, "PHXFS_IO_ENGINE=sync", log ? "PHXFS_LOG=debug" : "PHXFS_LOG=off", "PHXFS_LOG_FILE=log");
}
static void in_every_call(void) { story("calls"); }
static void in_a_transfer(void) { story("io"); }
static void in_the_log(void) { story("log"); }
static void in_the_table_of_registrations(void) { story("table"); }
static void at_the_start(void) { story("start"); }
static void while_the_engine_is_made_and_on_new_threads(void) { story("engine"); }

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(in_every_call), T_CASE(in_a_transfer), T_CASE(in_the_log), T_CASE(in_the_table_of_registrations),
    T_CASE(at_the_start), T_CASE(while_the_engine_is_made_and_on_new_threads),
  };
  static const t_case children[] = {
    {"calls", child_calls}, {"io", child_io}, {"log", child_log}, {"table", child_table},
    {"start", child_start}, {"engine", child_engine}, {0}};
  return T_RUN(argc, argv, cases, children);
}
