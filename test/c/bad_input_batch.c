/* Every wrong argument of the batch calls, every wrong field of a request, and
 * every wrong handle: the value and errno of docs/abi.md, nothing left behind. */
#include "t.h"

#include <sys/resource.h>
#include <sys/mman.h>

static char *area, *reg; /* 4 pages, the middle two registered on device 0 */
static int fd, closed;

struct row {
  const char *what;
  phxfs_io_req_t req;
  ssize_t want; /* result */
};

/* One wrong request between two right ones, through each of the four calls. */
static void drive(const struct row *r, bool write, bool async) {
  phxfs_io_req_t ok = {fd, 0, reg, 0, 4096, 0, 111};
  phxfs_io_req_t reqs[3] = {ok, r->req, ok};
  reqs[1].result = 111;
  int failed = r->want != (ssize_t)r->req.nbytes, got;
  if (async) {
    phxfs_batch_t *h = write ? phxfs_batch_submit_write(reqs, 3) : phxfs_batch_submit_read(reqs, 3);
    NEED(h != NULL, "submit: %s: %s", r->what, t_errno(errno));
    ssize_t unresolved = r->want == -EFAULT ? -EFAULT : 111;
    CHECK_EQ(reqs[1].result, unresolved, "result after submit, before wait: %s", r->what);
    CHECK_EQ(reqs[0].result, 111, "good neighbour's result before wait: %s", r->what);
    errno = T_ERRNO_MARK;
    got = phxfs_batch_wait(h);
  } else {
    errno = T_ERRNO_MARK;
    got = write ? phxfs_write_batch(reqs, 3) : phxfs_read_batch(reqs, 3);
  }
  CHECK_EQ(errno, T_ERRNO_MARK, "errno after a count: %s", r->what);
  CHECK_EQ(got, failed, "failed requests, %s, %s: %s", write ? "write" : "read", async ? "async" : "sync", r->what);
  CHECK_EQ(reqs[1].result, r->want, "%s, %s: %s", write ? "write" : "read", async ? "async" : "sync", r->what);
  CHECK_EQ(reqs[0].result, 4096, "neighbour before: %s", r->what);
  CHECK_EQ(reqs[2].result, 4096, "neighbour behind: %s", r->what);
}

static void requests(void) {
  const size_t len = 2 * T_PAGE;
#define R(what, f, d, b, bo, n, fo, want) {what, {f, d, b, bo, n, fo, 0}, want}
  const struct row rows[] = {
    R("f_offset -1", fd, 0, reg, 0, 4096, -1, -EFAULT),
    R("f_offset minimum", fd, -1, area, 0, 4096, (off_t)INT64_MIN, -EFAULT),
    R("f_offset + nbytes overflows", fd, 0, reg, 0, 4096, INT64_MAX - 4095, -EFAULT),
    R("nbytes beyond ssize_t", fd, -1, area, 0, (size_t)SSIZE_MAX + 1, 0, -EFAULT),
    R("nbytes SIZE_MAX, device", fd, 0, reg, 0, SIZE_MAX, 0, -EFAULT),
    R("buf_offset -1, device", fd, 0, reg + 4096, -1, 16, 0, -EFAULT),
    R("buf_offset -1, CPU", fd, -1, area + 4096, -1, 16, 0, -EFAULT),
    R("CPU, buf + buf_offset overflows", fd, -1, (void *)-4096, 8192, 16, 0, -EFAULT),
    R("CPU, buf + nbytes overflows", fd, -1, (void *)-4096, 0, 8192, 0, -EFAULT),
    R("CPU, NULL", fd, -1, NULL, 0, 16, 0, -EFAULT),
    R("CPU, NULL, 0 bytes", fd, -1, NULL, 0, 0, 0, -EFAULT),
    R("id 8", fd, 8, reg, 0, 16, 0, -EFAULT),
    R("id INT_MAX", fd, INT_MAX, reg, 0, 16, 0, -EFAULT),
    R("device not open", fd, 1, reg, 0, 16, 0, -EFAULT),
    R("device not open, 0 bytes", fd, 1, reg, 0, 0, 0, -EFAULT),
    R("not registered", fd, 0, area, 0, 16, 0, -EFAULT),
    R("NULL, device", fd, 0, NULL, 0, 16, 0, -EFAULT),
    R("just behind", fd, 0, reg + len, 0, 0, 0, -EFAULT),
    R("one byte too long", fd, 0, reg, 0, len + 1, 0, -EFAULT),
    R("buf_offset INT64_MAX", fd, 0, reg, INT64_MAX, 16, 0, -EFAULT),
    R("fd -1", -1, 0, reg, 0, 16, 0, -EBADF),
    R("fd INT_MAX", INT_MAX, -1, area, 0, 16, 0, -EBADF),
    R("closed fd", closed, 0, reg, 0, 16, 0, -EBADF),
    R("closed fd, 0 bytes", closed, 0, reg, 0, 0, 0, 0),
    R("0 bytes at the end, by buf_offset", fd, 0, reg, (off_t)len, 0, 0, 0),
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int k = 0; k < 4; k++) drive(&rows[i], k & 1, k & 2);
}

static void counts(void) {
  phxfs_io_req_t req = {fd, 0, reg, 0, 4096, 0, 111};
  static const int none[] = {0, -1, INT_MIN};
  static const int some[] = {1, 17, INT_MAX};
  for (int i = 0; i < 3; i++) {
    CHECK_OK(phxfs_read_batch(NULL, none[i]), 0, "NULL, n %d", none[i]);
    CHECK_OK(phxfs_write_batch(&req, none[i]), 0, "n %d", none[i]);
    errno = T_ERRNO_MARK;
    phxfs_batch_t *r = phxfs_batch_submit_read(&req, none[i]), *w = phxfs_batch_submit_write(NULL, none[i]);
    CHECK_EQ(errno, T_ERRNO_MARK, "errno of submit, n %d", none[i]);
    CHECK(r && w, "submit with n %d gives %p, %p: %s", none[i], (void *)r, (void *)w, t_errno(errno));
    CHECK_OK(phxfs_batch_wait(r), 0, "n %d", none[i]);
    CHECK_OK(phxfs_batch_destroy(w), 0, "n %d", none[i]);
    CHECK_ERR(phxfs_read_batch(NULL, some[i]), -EINVAL, EINVAL, "NULL, n %d", some[i]);
    CHECK_ERR(phxfs_write_batch(NULL, some[i]), -EINVAL, EINVAL, "NULL, n %d", some[i]);
    CHECK_NULL(phxfs_batch_submit_read(NULL, some[i]), EINVAL, "NULL, n %d", some[i]);
    CHECK_NULL(phxfs_batch_submit_write(NULL, some[i]), EINVAL, "NULL, n %d", some[i]);
  }
  CHECK_EQ(req.result, 111, "no result is written with n <= 0");
}

static void handles(void) {
  int local = 0;
  phxfs_io_req_t req = {fd, 0, reg, 0, 4096, 0, 0};
  phxfs_batch_t *waited = phxfs_batch_submit_read(&req, 1), *gone = phxfs_batch_submit_read(&req, 1);
  phxfs_batch_t *live = phxfs_batch_submit_read(&req, 1);
  NEED(waited && gone && live, "submit: %s", t_errno(errno));
  CHECK_OK(phxfs_batch_wait(waited), 0, "first wait");
  CHECK_OK(phxfs_batch_destroy(gone), 0, "first destroy");
  struct {
    const char *what;
    uintptr_t h;
  } wild[] = {{"NULL", 0}, {"1", 1}, {"-1", UINTPTR_MAX}, {"INTPTR_MIN", (uintptr_t)INTPTR_MIN},
              {"stack", (uintptr_t)&local}, {"array", (uintptr_t)&req}, {"registered memory", (uintptr_t)reg},
              {"waited", (uintptr_t)waited}, {"destroyed", (uintptr_t)gone},
              {"live + 1 page", (uintptr_t)live + 4096}, {"live with its upper half wrong", (uintptr_t)live ^ ((uintptr_t)1 << 63)},
              {"half a pattern", 0x5a5a5a5a}, {"pattern", 0xdeadbeefdeadbeef}};
  for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
    phxfs_batch_t *h = (phxfs_batch_t *)wild[i].h;
    CHECK_ERR(phxfs_batch_wait(h), -EINVAL, EINVAL, "wait: %s %p", wild[i].what, (void *)h);
    CHECK_ERR(phxfs_batch_destroy(h), -EINVAL, EINVAL, "destroy: %s %p", wild[i].what, (void *)h);
  }
  CHECK_OK(phxfs_batch_wait(live), 0, "the live one is unharmed");
}

static void every_wrong_argument(void) {
  t_leaks before;
  void *target;
  area = t_map(4 * T_PAGE);
  reg = area + T_PAGE;
  fd = t_file(1 << 20, 1);
  closed = t_closed_fd();
  CHECK_OK(phxfs_open(0), 0, "0");
  CHECK_OK(phxfs_regmem(0, reg, 2 * T_PAGE, &target), 0, "registration");
  requests(), counts(), handles();
  t_leaks_take(&before);
  for (int i = 0; i < 200 && !t_failed(); i++) requests(), counts(), handles();
  CHECK_NO_GROWTH(&before, 6144, "200 passes");
  CHECK_OK(phxfs_deregmem(0, reg, 2 * T_PAGE), 0, "no batch holds it");
  CHECK_OK(phxfs_close(0), 0, "no batch holds it");
}

/* An array of INT_MAX requests that costs no memory (a small file, mapped over and
 * over), under a limit of address space in which the library cannot hold a copy. */
static void child_huge_batch(void) {
  const size_t piece = (size_t)4 << 20, all = ((size_t)INT_MAX * sizeof(phxfs_io_req_t) / piece + 1) * piece;
  phxfs_io_req_t small = {t_file(4096, 1), -1, malloc(4096), 0, 4096, 0, 0};
  CHECK_OK(phxfs_read_batch(&small, 1), 0, "before");
  int zeros = memfd_create("requests", 0);
  char *array = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  NEED(zeros >= 0 && !ftruncate(zeros, (off_t)piece) && array != MAP_FAILED, "%s", t_errno(errno));
  for (size_t at = 0; at < all; at += piece)
    NEED(mmap(array + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, zeros, 0) != MAP_FAILED, "%s", t_errno(errno));
  unsigned long long pages = 0;
  FILE *f = fopen("/proc/self/statm", "re");
  NEED(f && fscanf(f, "%llu", &pages) == 1, "statm");
  fclose(f);
  struct rlimit l = {pages * 4096 + ((rlim_t)4 << 30), RLIM_INFINITY};
  NEED(setrlimit(RLIMIT_AS, &l) == 0, "%s", t_errno(errno));
  phxfs_io_req_t *reqs = (phxfs_io_req_t *)array;
  CHECK_ERR(phxfs_read_batch(reqs, INT_MAX), -ENOMEM, ENOMEM, "n INT_MAX");
  CHECK_ERR(phxfs_write_batch(reqs, INT_MAX), -ENOMEM, ENOMEM, "n INT_MAX");
  CHECK_NULL(phxfs_batch_submit_read(reqs, INT_MAX), ENOMEM, "n INT_MAX");
  CHECK_NULL(phxfs_batch_submit_write(reqs, INT_MAX), ENOMEM, "n INT_MAX");
  CHECK_OK(phxfs_read_batch(&small, 1), 0, "after");
}

static void int_max_requests_without_memory_give_enomem(void) {
#ifdef __SANITIZE_ADDRESS__
  T_SKIP(NULL, "a limit of address space: AddressSanitizer needs terabytes of it");
#endif
  RUN_CHILD("huge_batch", NULL);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(every_wrong_argument), T_CASE(int_max_requests_without_memory_give_enomem)};
  static const t_case children[] = {{"huge_batch", child_huge_batch}, {0}};
  t_use_host();
  return T_RUN(argc, argv, cases, children);
}
