/* Every wrong argument of every parameter of the control calls and of single
 * reads and writes: the value and errno of docs/abi.md, and nothing left behind. */
#include "t.h"

#include <fcntl.h>
#include <sys/mman.h>

enum call { OPEN, CLOSE, FIND_DEV, REGMEM, DEREGMEM, READ, WRITE };
static const char *const names[] = {"open", "close", "find_dev", "regmem", "deregmem", "read", "write"};

struct row {
  enum call call;
  const char *what;
  long long want;
  int eno;
  int id;
  const void *addr; /* address or buf */
  size_t len;       /* regmem, deregmem */
  void **target;
  int fd;
  off_t buf_offset, f_offset;
  ssize_t nbyte;
};

static char *area; /* 8 pages: [2,6) registered on device 0, the rest only mapped */
static char *reg, *rdonly, *hole;
static const size_t LEN = 4 * T_PAGE;
static void *target;
static int fd, closed;

static long long call(const struct row *r) {
  switch (r->call) {
  case OPEN: return phxfs_open(r->id);
  case CLOSE: return phxfs_close(r->id);
  case FIND_DEV: return phxfs_find_dev(r->id);
  case REGMEM: return phxfs_regmem(r->id, r->addr, r->len, r->target);
  case DEREGMEM: return phxfs_deregmem(r->id, r->addr, r->len);
  case READ: return phxfs_read(r->fd, r->id, (void *)r->addr, r->buf_offset, r->nbyte, r->f_offset);
  case WRITE: return phxfs_write(r->fd, r->id, (void *)r->addr, r->buf_offset, r->nbyte, r->f_offset);
  }
  return 0;
}

static void drive(const struct row *rows, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const struct row *r = &rows[i];
    if (t_emulated() && r->call == REGMEM && r->want == -EFAULT) continue; /* memory that only the host connector looks at */
    target = (void *)0x5a5a;
    CHECK_ERR(call(r), r->want, r->eno, "%s: %s (id %d, addr %p, len %zu, fd %d, buf_offset %lld, nbyte %lld, f_offset %lld)",
              names[r->call], r->what, r->id, r->addr, r->len, r->fd, (long long)r->buf_offset,
              (long long)r->nbyte, (long long)r->f_offset);
    if (r->call == REGMEM)
      CHECK(target == (void *)0x5a5a, "regmem: %s: *target_addr is now %p", r->what, target);
  }
}
#define DRIVE(rows) drive(rows, sizeof rows / sizeof *rows)

static void ids(void) {
  const struct row rows[] = {
    {OPEN, "negative id", -1, EINVAL, .id = -1},       {OPEN, "id 8", -1, EINVAL, .id = 8},
    {OPEN, "INT_MAX", -1, EINVAL, .id = INT_MAX},      {OPEN, "INT_MIN", -1, EINVAL, .id = INT_MIN},
    {CLOSE, "negative id", -1, EINVAL, .id = -1},      {CLOSE, "id 8", -1, EINVAL, .id = 8},
    {CLOSE, "INT_MAX", -1, EINVAL, .id = INT_MAX},     {CLOSE, "INT_MIN", -1, EINVAL, .id = INT_MIN},
    {CLOSE, "not open", -1, ENODEV, .id = 1},          {FIND_DEV, "negative", -1, EINVAL, .id = -1},
    {FIND_DEV, "INT_MIN", -1, EINVAL, .id = INT_MIN},  {FIND_DEV, "no such ordinal", -1, ENODEV, .id = 8},
    {FIND_DEV, "INT_MAX", -1, ENODEV, .id = INT_MAX},
  };
  DRIVE(rows);
}

static void registrations(void) {
  void **t = &target;
  char *free_page = area + 6 * T_PAGE;
  const size_t top = (size_t)1 << 63;
#define BAD(what, e, i, a, l, t) {REGMEM, what, -EINVAL, e, .id = i, .addr = a, .len = l, .target = t}
#define LOST(what, e, i, a, l) {DEREGMEM, what, -1, e, .id = i, .addr = a, .len = l}
  const struct row rows[] = {
    BAD("id -1", EINVAL, -1, free_page, T_PAGE, t),
    BAD("id 8", EINVAL, 8, free_page, T_PAGE, t),
    BAD("id INT_MAX", EINVAL, INT_MAX, free_page, T_PAGE, t),
    BAD("id INT_MIN", EINVAL, INT_MIN, free_page, T_PAGE, t),
    BAD("device not open", ENODEV, 1, free_page, T_PAGE, t),
    BAD("NULL addr", EINVAL, 0, NULL, T_PAGE, t),
    BAD("NULL target", EINVAL, 0, free_page, T_PAGE, NULL),
    BAD("len 0", EINVAL, 0, free_page, 0, t),
    BAD("len 1", EINVAL, 0, free_page, 1, t),
    BAD("len 4096", EINVAL, 0, free_page, 4096, t),
    BAD("len 64 KiB + 1", EINVAL, 0, free_page, T_PAGE + 1, t),
    BAD("len 64 KiB - 1", EINVAL, 0, free_page, T_PAGE - 1, t),
    BAD("len SIZE_MAX", EINVAL, 0, free_page, SIZE_MAX, t),
    BAD("addr + len overflows", EINVAL, 0, free_page, SIZE_MAX & ~(T_PAGE - 1), t),
    BAD("addr near the top overflows", EINVAL, 0, (void *)~(T_PAGE - 1), 2 * T_PAGE, t),
    BAD("addr + 1", EINVAL, 0, free_page + 1, T_PAGE, t),
    BAD("addr + 4096", EINVAL, 0, free_page + 4096, T_PAGE, t),
    BAD("addr + 32 KiB", EINVAL, 0, free_page + T_PAGE / 2, T_PAGE, t),
    BAD("overlap: same start, shorter", EINVAL, 0, reg, LEN - T_PAGE, t),
    BAD("overlap: same start, longer", EINVAL, 0, reg, LEN + T_PAGE, t),
    BAD("overlap: inside", EINVAL, 0, reg + T_PAGE, T_PAGE, t),
    BAD("overlap: ends inside", EINVAL, 0, reg - T_PAGE, 2 * T_PAGE, t),
    BAD("overlap: starts inside", EINVAL, 0, reg + LEN - T_PAGE, 2 * T_PAGE, t),
    BAD("overlap: contains", EINVAL, 0, area, 8 * T_PAGE, t),
    {REGMEM, "range with a hole", -EFAULT, EFAULT, .id = 0, .addr = hole, .len = 3 * T_PAGE, .target = t},
    {REGMEM, "range that ends in a hole", -EFAULT, EFAULT, .id = 0, .addr = free_page, .len = 3 * T_PAGE, .target = t},
    {REGMEM, "no access", -EFAULT, EFAULT, .id = 0, .addr = hole + T_PAGE, .len = T_PAGE, .target = t},
    {REGMEM, "read-only memory", -EFAULT, EFAULT, .id = 0, .addr = rdonly, .len = T_PAGE, .target = t},
    {REGMEM, "2^63 bytes", -EFAULT, EFAULT, .id = 0, .addr = free_page, .len = top, .target = t},
    {REGMEM, "nothing mapped", -EFAULT, EFAULT, .id = 0, .addr = (void *)T_PAGE, .len = T_PAGE, .target = t},
    LOST("id -1", EINVAL, -1, reg, LEN),
    LOST("id 8", EINVAL, 8, reg, LEN),
    LOST("id INT_MAX", EINVAL, INT_MAX, reg, LEN),
    LOST("id INT_MIN", EINVAL, INT_MIN, reg, LEN),
    LOST("device not open", ENODEV, 1, reg, LEN),
    LOST("other device", ENOENT, 7, reg, LEN),
    LOST("NULL", ENOENT, 0, NULL, LEN),
    LOST("unknown", ENOENT, 0, free_page, T_PAGE),
    LOST("interior page", ENOENT, 0, reg + T_PAGE, LEN - T_PAGE),
    LOST("interior byte", ENOENT, 0, reg + 1, LEN),
    LOST("len 0", ENOENT, 0, reg, 0),
    LOST("shorter", ENOENT, 0, reg, LEN - T_PAGE),
    LOST("longer", ENOENT, 0, reg, LEN + T_PAGE),
    LOST("one byte less", ENOENT, 0, reg, LEN - 1),
    LOST("len SIZE_MAX", ENOENT, 0, reg, SIZE_MAX),
  };
  DRIVE(rows);
}

static void transfers(enum call c) {
  char *cpu = area;
#define IO(what, want, e, f, i, b, bo, n, fo) \
  {c, what, want, e, .fd = f, .id = i, .addr = b, .buf_offset = bo, .nbyte = n, .f_offset = fo}
  const struct row rows[] = {
    IO("nbyte -1, CPU", -EINVAL, EINVAL, fd, -1, cpu, 0, -1, 0),
    IO("nbyte -1, device", -EINVAL, EINVAL, fd, 0, reg, 0, -1, 0),
    IO("nbyte minimum", -EINVAL, EINVAL, fd, 0, reg, 0, -SSIZE_MAX - 1, 0),
    IO("f_offset -1, CPU", -EINVAL, EINVAL, fd, -1, cpu, 0, 4096, -1),
    IO("f_offset -1, device", -EINVAL, EINVAL, fd, 0, reg, 0, 4096, -1),
    IO("f_offset minimum", -EINVAL, EINVAL, fd, 0, reg, 0, 4096, (off_t)INT64_MIN),
    IO("f_offset -1, 0 bytes", -EINVAL, EINVAL, fd, -1, cpu, 0, 0, -1),
    IO("f_offset + nbyte overflows, CPU", -EINVAL, EINVAL, fd, -1, cpu, 0, 4097, INT64_MAX - 4096),
    IO("f_offset + nbyte overflows, device", -EINVAL, EINVAL, fd, 0, reg, 0, 1, INT64_MAX),
    IO("CPU, buf_offset -1", -EINVAL, EINVAL, fd, -1, cpu + 4096, -1, 16, 0),
    IO("CPU, buf_offset minimum", -EINVAL, EINVAL, fd, -1, cpu, (off_t)INT64_MIN, 16, 0),
    IO("CPU, buf + buf_offset overflows", -EINVAL, EINVAL, fd, -1, (void *)-4096, 8192, 16, 0),
    IO("CPU, buf + nbyte overflows", -EINVAL, EINVAL, fd, -1, (void *)-4096, 0, 8192, 0),
    IO("CPU, NULL", -EFAULT, EFAULT, fd, -1, NULL, 0, 4096, 0),
    IO("CPU, any negative id", -EFAULT, EFAULT, fd, INT_MIN, NULL, 0, 4096, 0),
    IO("id 8", -1, EINVAL, fd, 8, reg, 0, 4096, 0),
    IO("id INT_MAX", -1, EINVAL, fd, INT_MAX, reg, 0, 4096, 0),
    IO("id 8, 0 bytes", -1, EINVAL, fd, 8, reg, 0, 0, 0),
    IO("device not open", -1, ENODEV, fd, 1, reg, 0, 4096, 0),
    IO("device not open, 0 bytes", -1, ENODEV, fd, 1, reg, 0, 0, 0),
    IO("not registered", -1, EFAULT, fd, 0, area, 0, 4096, 0),
    IO("registered on another device", -1, EFAULT, fd, 7, reg, 0, 4096, 0),
    IO("device, NULL", -1, EFAULT, fd, 0, NULL, 0, 4096, 0),
    IO("just before", -1, EFAULT, fd, 0, reg - 1, 1, 4096, 0),
    IO("just behind", -1, EFAULT, fd, 0, reg + LEN, 0, 1, 0),
    IO("just behind, 0 bytes", -1, EFAULT, fd, 0, reg + LEN, 0, 0, 0),
    IO("one byte too long", -1, EFAULT, fd, 0, reg, 0, (ssize_t)LEN + 1, 0),
    IO("one byte too far", -1, EFAULT, fd, 0, reg + LEN - 4096, 1, 4096, 0),
    IO("buf_offset at the end", -1, EFAULT, fd, 0, reg, (off_t)LEN, 1, 0),
    IO("buf_offset behind the end, 0 bytes", -1, EFAULT, fd, 0, reg, (off_t)LEN + 1, 0, 0),
    IO("buf_offset INT64_MAX", -1, EFAULT, fd, 0, reg, INT64_MAX, 4096, 0),
    IO("nbyte SSIZE_MAX", -1, EFAULT, fd, 0, reg, 0, SSIZE_MAX, 0),
    IO("both huge", -1, EFAULT, fd, 0, reg, INT64_MAX, SSIZE_MAX, 0),
    IO("device, buf_offset -1", -1, EINVAL, fd, 0, reg + 4096, -1, 16, 0),
    IO("device, buf_offset minimum", -1, EINVAL, fd, 0, reg, (off_t)INT64_MIN, 16, 0),
    IO("fd -1, CPU", -EBADF, EBADF, -1, -1, cpu, 0, 16, 0),
    IO("fd -1, device", -EBADF, EBADF, -1, 0, reg, 0, 16, 0),
    IO("fd INT_MAX", -EBADF, EBADF, INT_MAX, 0, reg, 0, 16, 0),
    IO("fd INT_MIN", -EBADF, EBADF, INT_MIN, -1, cpu, 0, 16, 0),
    IO("closed fd, CPU", -EBADF, EBADF, closed, -1, cpu, 0, 16, 0),
    IO("closed fd, device", -EBADF, EBADF, closed, 0, reg, 0, 16, 0),
  };
  DRIVE(rows);
}

static void set_up(void) {
  area = t_map(8 * T_PAGE);
  reg = area + 2 * T_PAGE;
  rdonly = t_map(T_PAGE);
  mprotect(rdonly, T_PAGE, PROT_READ);
  hole = t_map(3 * T_PAGE);
  mprotect(hole + T_PAGE, T_PAGE, PROT_NONE);
  fd = t_file(1 << 20, 1);
  closed = t_closed_fd();
  CHECK_OK(phxfs_open(0), 0, "0");
  CHECK_OK(phxfs_open(7), 0, "7");
  CHECK_OK(phxfs_regmem(0, reg, LEN, &target), 0, "the registration");
}

static void every_wrong_argument(void) {
  t_leaks before;
  set_up();
  if (t_failed()) return;
  ids(), registrations(), transfers(READ), transfers(WRITE); /* first pass: lazy parts start */
  t_leaks_take(&before);
  for (int i = 0; i < 200 && !t_failed(); i++)
    ids(), registrations(), transfers(READ), transfers(WRITE);
  CHECK_NO_GROWTH(&before, 6144, "200 passes over the table");
  /* No registration, no reference and no open count came of it. */
  CHECK_OK(phxfs_regmem(0, area, 2 * T_PAGE, &target), 0, "free memory before");
  CHECK_OK(phxfs_deregmem(0, area, 2 * T_PAGE), 0, "free memory before");
  CHECK_OK(phxfs_regmem(0, reg + LEN, 2 * T_PAGE, &target), 0, "free memory behind");
  CHECK_OK(phxfs_read(fd, 0, reg, 0, (ssize_t)LEN, 0), (long long)LEN, "the registration still works");
  CHECK_DATA(reg, LEN, 1, 0, "the registration still works");
  CHECK_OK(phxfs_deregmem(0, reg, LEN), 0, "its one reference");
  CHECK_ERR(phxfs_deregmem(0, reg, LEN), -1, ENOENT, "no second reference");
  CHECK_OK(phxfs_close(0), 0, "its one count");
  CHECK_ERR(phxfs_close(0), -1, ENODEV, "no second count");
  CHECK_ERR(phxfs_close(1), -1, ENODEV, "never opened");
  CHECK_OK(phxfs_close(7), 0, "7");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(every_wrong_argument)};
  t_use_host();
  return T_RUN(argc, argv, cases, NULL);
}
