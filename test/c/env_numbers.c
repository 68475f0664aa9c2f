/* PHXFS_QUEUE_DEPTH and PHXFS_WORKERS, set after the library is loaded, take
 * effect; a value that is no number in range is ignored, and named in the log. */
#include "t_load.h"

#include <dirent.h>
#include <sys/mman.h>

static struct t_api lib;
enum { N = 300 };

/* What the kernel tells of a ring: entries = mask + 1; 0: it tells nothing. */
static unsigned ring_entries(void) {
  unsigned most = 0, mask;
  DIR *d = opendir("/proc/self/fdinfo");
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[300], line[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%s", e->d_name);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
      if (sscanf(line, "SqMask: %x", &mask) == 1 && mask + 1 > most) most = mask + 1;
    if (f) fclose(f);
  }
  if (d) closedir(d);
  return most;
}

/* More requests than a small ring has room for. */
static void reads(void) {
  static phxfs_io_req_t q[N];
  char *m = t_map(N * 4096);
  int fd = t_file(N * 4096, 1);
  for (int i = 0; i < N; i++) q[i] = (phxfs_io_req_t){fd, -1, m, i * 4096, 4096, i * 4096, 0};
  for (int i = 0; i < 3; i++) {
    memset(m, 0, N * 4096);
    CHECK_OK(i ? lib.wait(lib.submit_read(q, N)) : lib.read_batch(q, N), 0, "round %d", i);
    CHECK_DATA(m, N * 4096, 1, 0, "round %d", i);
  }
}

static void child_depth(void) {
  unsigned want = (unsigned)atoi(getenv("WANT"));
  t_use_host();
  if (!t_load(&lib)) return;
  setenv("PHXFS_QUEUE_DEPTH", getenv("VALUE"), 1);
  reads();
  unsigned got = ring_entries();
  if (strcmp(lib.engine_name(), "io_uring")) T_SKIP("io_uring", "io_uring");
  if (!got) T_SKIP(NULL, "a kernel whose fdinfo tells the size of a ring");
  CHECK_EQ(got, want, "entries of the largest ring, PHXFS_QUEUE_DEPTH=%s", getenv("VALUE"));
}

static void child_log(void) {
  t_use_host();
  if (!t_load(&lib)) return;
  setenv(getenv("NAME"), getenv("VALUE"), 1);
  reads();
}

static void depth(const char *value, int want) {
  char v[32], w[32];
  snprintf(v, sizeof v, "VALUE=%s", value), snprintf(w, sizeof w, "WANT=%d", want);
  RUN_CHILD("depth", "PHXFS_QUEUE_DEPTH", v, w);
}

static void queue_depth(void) { depth("8", 8), depth("64", 64), depth("4096", 4096); }
static void queue_depth_out_of_range_is_ignored(void) { depth("7", 256), depth("4097", 256), depth("64k", 256); }

/* Lines of the log that say so. */
static int lines(const char *name, const char *value) {
  char n[64], v[64], text[4096] = "", want[128];
  int log = memfd_create("log", 0), count = 0;
  snprintf(n, sizeof n, "NAME=%s", name), snprintf(v, sizeof v, "VALUE=%s", value);
  CHECK_EXIT(t_spawn("log", (const char *const[]){n, v, "PHXFS_LOG=error", "PHXFS_LOG_FILE", name, NULL}, -1, log), 0, v);
  if (pread(log, text, sizeof text - 1, 0) < 0) t_fail(__FILE__, __LINE__, "%s", t_errno(errno));
  close(log);
  snprintf(want, sizeof want, "call=environment errno=EINVAL reason=\"%s is no number from ", name);
  for (char *p = text; (p = strstr(p, want)); p++) count++;
  return count;
}

static void bad_numbers_are_told_once_and_ignored(void) {
  static const char *const bad[] = {"0", "-1", "5000", "none", "8x", "99999999999999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    CHECK_EQ(lines("PHXFS_QUEUE_DEPTH", bad[i]), 1, "PHXFS_QUEUE_DEPTH=%s", bad[i]);
    CHECK_EQ(lines("PHXFS_WORKERS", bad[i]), 1, "PHXFS_WORKERS=%s", bad[i]);
  }
}
static void good_numbers_are_not_told(void) {
  static const char *const good[] = {"8", "64", ""};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    CHECK_EQ(lines("PHXFS_QUEUE_DEPTH", good[i]), 0, "PHXFS_QUEUE_DEPTH=%s", good[i]);
    CHECK_EQ(lines("PHXFS_WORKERS", good[i]), 0, "PHXFS_WORKERS=%s", good[i]);
  }
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(queue_depth), T_CASE(queue_depth_out_of_range_is_ignored),
    T_CASE(bad_numbers_are_told_once_and_ignored), T_CASE(good_numbers_are_not_told),
  };
  static const t_case children[] = {{"depth", child_depth}, {"log", child_log}, {0}};
  return T_RUN(argc, argv, cases, children);
}
