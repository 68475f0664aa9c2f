// work.cc - uses of the library whose every byte is verified.
#include "stress.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static int data = -1;
static char *region; // BLOCKS pages, registered by the first process
static const size_t region_bytes = (size_t)BLOCKS * PAGE;

bool wrong(const char *format, ...) {
  char text[512];
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  dprintf(STDERR_FILENO, "  wrong in %d: %.*s\n", (int)getpid(), n, text);
  return false;
}

static void fill(char *to, int block) {
  for (int i = 0; i < BLOCK; i++) to[i] = (char)(block * 31 + i * 7 + (i >> 8));
}

static bool holds(const char *got, int block, const char *what) {
  char want[BLOCK];
  fill(want, block);
  return !memcmp(got, want, BLOCK) || wrong("%s: block %d has other bytes", what, block);
}

bool make_data() {
  char b[BLOCK], name[] = "dataXXXXXX";
  data = mkstemp(name);
  unlink(name);
  for (int i = 0; i < BLOCKS; i++) {
    fill(b, i);
    if (pwrite(data, b, BLOCK, (off_t)i * BLOCK) != BLOCK) return wrong("no data file: %m");
  }
  char *p = (char *)mmap(nullptr, region_bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  region = (char *)(((uintptr_t)p + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
  void *target;
  if (phxfs_open(DEVICE) || phxfs_regmem(DEVICE, region, region_bytes, &target)) return wrong("open and regmem: %m");
  return true;
}

static void requests(phxfs_io_req_t *r, int device, char *to) {
  for (int i = 0; i < BLOCKS; i++) r[i] = {data, device, to, (off_t)i * BLOCK, BLOCK, (off_t)i * BLOCK, -1};
}

static bool results(const phxfs_io_req_t *r, const char *to, const char *what) {
  for (int i = 0; i < BLOCKS; i++) {
    if (r[i].result != BLOCK) return wrong("%s: request %d: %zd", what, i, r[i].result);
    if (!holds(to + i * BLOCK, i, what)) return false;
  }
  return true;
}

static bool use_async(char *to, phxfs_io_req_t *r) {
  memset(to, 0, BLOCKS * BLOCK);
  phxfs_batch_t *h = phxfs_batch_submit_read(r, BLOCKS);
  if (!h) return errno == EBUSY || wrong("submit: %m");
  int n = phxfs_batch_wait(h);
  if (n) return wrong("wait: %d %m", n);
  if (phxfs_batch_wait(h) != -EINVAL || phxfs_batch_destroy(h) != -EINVAL) return wrong("a handle of the past is taken");
  return results(r, to, "async");
}

bool use_batches() {
  char *to = (char *)calloc(BLOCKS, BLOCK);
  phxfs_io_req_t r[BLOCKS];
  requests(r, -1, to);
  int n = phxfs_read_batch(r, BLOCKS);
  bool ok = n ? wrong("read_batch: %d %m", n) : results(r, to, "sync");
  ok = ok && use_async(to, r);
  ssize_t one = phxfs_read(data, -1, to, 0, BLOCK, 3 * BLOCK);
  if (ok && one != BLOCK) ok = wrong("single: %zd %m", one);
  ok = ok && holds(to, 3, "single");
  free(to);
  return ok;
}

// Each thread has pages of its own in the registration.
bool use_device() {
  static std::atomic<int> turn;
  thread_local int mine = turn++ % (BLOCKS / 2) * 2;
  char *to = region + (size_t)mine * PAGE;
  phxfs_io_req_t r[BLOCKS];
  requests(r, DEVICE, to);
  int n = phxfs_read_batch(r, BLOCKS);
  if (n) return wrong("device batch: %d, first %zd %m", n, r[0].result);
  ssize_t one = phxfs_read(data, DEVICE, to, 0, BLOCK, 0);
  return one == BLOCK ? results(r, to, "device") : wrong("device read: %zd %m", one);
}

bool use_own() {
  void *target;
  if (phxfs_deregmem(DEVICE, region, region_bytes)) return wrong("deregmem of what is borrowed: %m");
  if (phxfs_read(data, DEVICE, region, 0, 1, 0) != -1) return wrong("read without a registration");
  if (phxfs_regmem(DEVICE, region, region_bytes, &target) || !use_device()) return wrong("a registration of its own: %m");
  if (phxfs_open(DEVICE) || phxfs_close(DEVICE)) return wrong("open and close: %m");
  return true;
}
