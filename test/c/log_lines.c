/* The log: nothing at all by default, one line per failing call or request with
 * PHXFS_LOG=error, in the form of docs/errors.md:
 *   libphoenix[PID] error call=phxfs_read device=0 address=0x.. length=.. offset=.. fd=.. errno=EFAULT reason="..." */
#include "t.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Every failing call, the same list for every child; each tells how many lines
 * with which words it is worth. */
static char *m, *reg;
static int fd, direct, calls;
static void *target;

struct expected {
  const char *call;
  int device;
  uintptr_t address;
  long long length, offset;
  int fd;
  const char *eno;
};
static struct expected want[64];

#define DEVICE(c, d, e) want[calls++] = (struct expected){#c, d, 0, -1, -1, -1, e}
#define RANGE(c, d, a, l, e) want[calls++] = (struct expected){#c, d, (uintptr_t)(a), (long long)(l), -1, -1, e}
#define IO(c, d, a, l, o, f, e) want[calls++] = (struct expected){#c, d, (uintptr_t)(a), (long long)(l), o, f, e}

static void fail_everywhere(void) {
  phxfs_open(8), DEVICE(phxfs_open, 8, "EINVAL");
  phxfs_close(1), DEVICE(phxfs_close, 1, "ENODEV");
  phxfs_find_dev(-1), DEVICE(phxfs_find_dev, -1, "EINVAL");
  phxfs_regmem(0, reg + 1, T_PAGE, &target), RANGE(phxfs_regmem, 0, reg + 1, T_PAGE, "EINVAL");
  phxfs_regmem(1, m, T_PAGE, &target), RANGE(phxfs_regmem, 1, m, T_PAGE, "ENODEV");
  if (!t_emulated()) phxfs_regmem(0, (void *)T_PAGE, T_PAGE, &target), RANGE(phxfs_regmem, 0, T_PAGE, T_PAGE, "EFAULT");
  phxfs_deregmem(0, m, T_PAGE), RANGE(phxfs_deregmem, 0, m, T_PAGE, "ENOENT");
  phxfs_read(fd, 0, m, 0, 4096, 77), IO(phxfs_read, 0, m, 4096, 77, fd, "EFAULT");
  phxfs_read(fd, 1, m, 0, 4096, 77), IO(phxfs_read, 1, m, 4096, 77, fd, "ENODEV");
  phxfs_read(fd, 0, reg, 0, 4096, -5), IO(phxfs_read, 0, reg, 4096, -5, fd, "EINVAL");
  phxfs_read(12345, 0, reg, 0, 4096, 0), IO(phxfs_read, 0, reg, 4096, 0, 12345, "EBADF");
  phxfs_read(12345, -1, m, 0, 4096, 0), IO(phxfs_read, -1, m, 4096, 0, 12345, "EBADF");
  phxfs_write(fd, -1, m, 0, 4096, -1), IO(phxfs_write, -1, m, 4096, -1, fd, "EINVAL");
  phxfs_write(fd, 0, m, 0, 16, 3), IO(phxfs_write, 0, m, 16, 3, fd, "EFAULT");
  phxfs_read_batch(NULL, 3), want[calls++] = (struct expected){"phxfs_read_batch", INT_MIN, 0, -1, -1, -1, "EINVAL"};
  phxfs_io_req_t q[4] = {{fd, 0, reg, 0, 16, 0, 0}, {fd, 0, m, 0, 100, 200, 0}, {fd, 3, m, 0, 500, 600, 0}, {12345, 0, reg, 0, 300, 400, 0}};
  phxfs_read_batch(q, 4);
  IO(phxfs_read_batch, 0, m, 100, 200, fd, "EFAULT");
  IO(phxfs_read_batch, 3, m, 500, 600, fd, "E"); /* EFAULT, or the ENODEV behind it */
  IO(phxfs_read_batch, 0, reg, 300, 400, 12345, "EBADF");
  phxfs_batch_submit_write(NULL, 1), want[calls++] = (struct expected){"phxfs_batch_submit_write", INT_MIN, 0, -1, -1, -1, "EINVAL"};
  phxfs_batch_wait(NULL), want[calls++] = (struct expected){"phxfs_batch_wait", INT_MIN, 0, -1, -1, -1, "EINVAL"};
  phxfs_batch_destroy((phxfs_batch_t *)48), want[calls++] = (struct expected){"phxfs_batch_destroy", INT_MIN, 0, -1, -1, -1, "EINVAL"};
  /* And what must not be worth a line: success, a short read, a count. */
  phxfs_read(fd, 0, reg, 0, 4096, 0);
  phxfs_read(fd, 0, reg, 0, 4096, 1 << 20);
  phxfs_read_batch(q, 1);
}

static void set_up(void) {
  m = t_map(T_PAGE), reg = t_map(T_PAGE), fd = t_file(T_PAGE, 1);
  if (phxfs_open(0) || phxfs_regmem(0, reg, T_PAGE, &target)) t_fail(__FILE__, __LINE__, "set up");
}

/* stdout and stderr of this child go to the file LOG_OUT; it reads them back. */
static char *text_of(const char *path) {
  struct stat st;
  int in = open(path, O_RDONLY | O_CLOEXEC);
  if (in < 0 || fstat(in, &st)) return NULL;
  char *text = calloc(1, (size_t)st.st_size + 1);
  if (pread(in, text, (size_t)st.st_size, 0) != st.st_size) CHECK(0, "read of %s", path);
  close(in);
  return text;
}

static void child_silent(void) {
  set_up(), fail_everywhere();
  fflush(NULL);
  char *text = text_of(getenv("LOG_OUT"));
  NEED(text, "captured output");
  CHECK(!*text, "output without PHXFS_LOG: %.300s", text);
}

static const char *field(const char *line, const char *name, char *to) {
  const char *p = strstr(line, name);
  *to = 0;
  if (p) sscanf(p + strlen(name), "%63[^ ]", to);
  return p ? to : NULL;
}

static void compare(const char *line, const struct expected *w) {
  char v[64], head[64];
  snprintf(head, sizeof head, "libphoenix[%d] error call=%s ", (int)getpid(), w->call);
  CHECK(!strncmp(line, head, strlen(head)), "begins with \"%s\": %.200s", head, line);
  if (w->device != INT_MIN) CHECK(field(line, " device=", v) && atoi(v) == w->device, "device=%d: %.200s", w->device, line);
  if (w->address) CHECK(field(line, " address=0x", v) && strtoull(v, NULL, 16) == w->address, "address=%#lx: %.200s", w->address, line);
  if (w->length >= 0) CHECK(field(line, " length=", v) && atoll(v) == w->length, "length=%lld: %.200s", w->length, line);
  if (w->fd >= 0) {
    CHECK(field(line, " offset=", v) && atoll(v) == w->offset, "offset=%lld: %.200s", w->offset, line);
    CHECK(field(line, " fd=", v) && atoi(v) == w->fd, "fd=%d: %.200s", w->fd, line);
  }
  CHECK(field(line, " errno=", v) && !strncmp(v, w->eno, strlen(w->eno)), "errno=%s: %.200s", w->eno, line);
  const char *r = strstr(line, " reason=\"");
  CHECK(r && strlen(r) > 12 && r[strlen(r) - 1] == '"', "a reason at the end: %.200s", line);
}

static void check_lines(char *text) {
  int i = 0;
  NEED(text, "captured output");
  for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save), i++) {
    if (i < calls) compare(line, &want[i]);
    else t_fail(__FILE__, __LINE__, "line %d of %d wanted: %.200s", i + 1, calls, line);
  }
  CHECK_EQ(i, calls, "lines for %d failures", calls);
}

static void child_error_to_stderr(void) {
  set_up(), fail_everywhere();
  check_lines(text_of(getenv("LOG_OUT")));
}
static void child_error_to_file(void) {
  set_up(), fail_everywhere();
  check_lines(text_of(getenv("PHXFS_LOG_FILE")));
  char *other = text_of(getenv("LOG_OUT"));
  CHECK(other && !*other, "PHXFS_LOG_FILE is set, and yet: %.200s", other);
}

/* EINVAL under O_DIRECT: the line says which of the three is to blame. */
static void child_direct(void) {
  set_up();
  direct = t_reopen(fd, O_RDONLY | O_DIRECT);
  static const struct {
    const char *word;
    size_t buf, n;
    off_t off;
  } rows[] = {{"offset", 0, 4096, 1}, {"length", 0, 1001, 0}, {"address", 1, 4096, 0}};
  if (direct < 0 || pread(direct, m, 4096, 0) != 4096) T_SKIP("odirect", "O_DIRECT in the current directory: %s", t_errno(errno));
  for (int k = 0; k < 9; k++) {
    int i = k % 3, device = k / 3 - 1; /* CPU, registered, and in a batch */
    char *at = (device ? m : reg) + rows[i].buf;
    if (pread(direct, at, rows[i].n, rows[i].off) >= 0 || errno != EINVAL) continue;
    if (truncate(getenv("LOG_OUT"), 0)) CHECK(0, "truncate");
    phxfs_io_req_t q = {direct, -1, at, 0, rows[i].n, rows[i].off, 0};
    if (device == 1) phxfs_read_batch(&q, 1);
    else CHECK_ERR(phxfs_read(direct, device, at, 0, (ssize_t)rows[i].n, rows[i].off), -EINVAL, EINVAL, "%s, device %d", rows[i].word, device);
    char *text = text_of(getenv("LOG_OUT")), *why = text ? strstr(text, "reason=") : NULL;
    CHECK(why && strstr(why, rows[i].word), "EINVAL by its %s (device %d), log: %.300s", rows[i].word, device, text);
    for (int o = 0; o < 3; o++) /* only the one to blame is called unaligned */
      if (o != i && why && strstr(why, rows[o].word)) t_fail(__FILE__, __LINE__, "EINVAL by its %s, log blames %s: %.300s", rows[i].word, rows[o].word, why);
  }
}

/* A read that ends with its file is worth the same line, whoever carries it out. */
static void child_short(void) {
  set_up();
  for (int device = -1; device < 1; device++) {
    char *at = device ? m : reg, want_line[256];
    if (truncate(getenv("LOG_OUT"), 0)) CHECK(0, "truncate");
    CHECK_OK(phxfs_read(fd, device, at, 5, 4096, T_PAGE - 100), 100, "device %d", device);
    CHECK_OK(phxfs_read(fd, device, at, 0, 16, T_PAGE - 16), 16, "all there is, device %d", device);
    CHECK_OK(phxfs_read(fd, device, at, 0, 0, T_PAGE), 0, "nothing, device %d", device);
    snprintf(want_line, sizeof want_line,
             "libphoenix[%d] debug call=phxfs_read device=%d address=%p length=4096 offset=%zu fd=%d reason=\"end of file, or an error after progress: 100 bytes moved\"",
             getpid(), device, (void *)(at + 5), T_PAGE - 100, fd);
    char *text = text_of(getenv("LOG_OUT")), *end = text ? strchr(text, '\n') : NULL;
    CHECK(text && !strncmp(text, want_line, strlen(want_line)), "log: %.300s, want %s..", text, want_line);
    CHECK(end && !end[1], "one line: %.600s", text);
    free(text);
  }
}

static void run(const char *entry, const char *level, bool file) {
  char out[] = "t_log_XXXXXX", path[64], name[64];
  int o = mkostemp(out, O_CLOEXEC | O_APPEND);
  snprintf(path, sizeof path, "LOG_OUT=%s", out);
  snprintf(name, sizeof name, file ? "PHXFS_LOG_FILE=%s.file" : "PHXFS_LOG_FILE", out);
  const char *env[] = {path, level, name, NULL};
  t_check_status(__FILE__, __LINE__, t_wait(t_spawn(entry, env, o, o)), 0, entry);
  unlink(out);
  unlink(name + sizeof "PHXFS_LOG_FILE");
  close(o);
}

static void silent_by_default(void) { run("silent", "PHXFS_LOG", false); }
static void silent_when_asked(void) {
  static const char *const off[] = {"PHXFS_LOG=", "PHXFS_LOG=0", "PHXFS_LOG=none", "PHXFS_LOG=off", "PHXFS_LOG=OFF"};
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) run("silent", off[i], false);
}
static void one_line_for_each_failure(void) { run("error_to_stderr", "PHXFS_LOG=error", false); }
static void the_log_goes_to_the_file(void) { run("error_to_file", "PHXFS_LOG=error", true); }
static void short_reads_are_told(void) { run("short", "PHXFS_LOG=debug", false); }
static void unaligned_direct_io_is_explained(void) { run("direct", "PHXFS_LOG=error", false); }

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(silent_by_default), T_CASE(silent_when_asked), T_CASE(one_line_for_each_failure),
    T_CASE(the_log_goes_to_the_file), T_CASE(unaligned_direct_io_is_explained), T_CASE(short_reads_are_told),
  };
  static const t_case children[] = {
    {"silent", child_silent}, {"error_to_stderr", child_error_to_stderr}, {"error_to_file", child_error_to_file},
    {"direct", child_direct}, {"short", child_short}, {0}};
  t_use_host();
  return T_RUN(argc, argv, cases, children);
}
