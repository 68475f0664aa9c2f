/* phx_gpu list | find SYSFS | memory FOLDER | check FOLDER OPERATIONS | bench FOLDER */
#include "gpu.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <time.h>

struct cuda cu;

void die(const char *format, ...) {
  va_list a;
  va_start(a, format);
  printf("FAIL ");
  vprintf(format, a);
  printf("\n");
  fflush(stdout);
  exit(1);
}

void cuda_load(void) {
  void *h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!h) die("%s", dlerror());
#define GET(member, name) \
  if (!(cu.member = (__typeof__(cu.member))dlsym(h, name))) die("libcuda has no %s", name)
  GET(init, "cuInit"); GET(count, "cuDeviceGetCount"); GET(get, "cuDeviceGet"); GET(address, "cuDeviceGetPCIBusId");
  GET(retain, "cuDevicePrimaryCtxRetain"); GET(set, "cuCtxSetCurrent"); GET(get_current, "cuCtxGetCurrent");
  GET(alloc, "cuMemAlloc_v2"); GET(free, "cuMemFree_v2"); GET(attribute, "cuPointerGetAttribute"); GET(fill, "cuMemsetD8_v2");
  GET(host_alloc, "cuMemHostAlloc"); GET(in, "cuMemcpyHtoD_v2"); GET(out, "cuMemcpyDtoH_v2");
  GET(stream, "cuStreamCreate"); GET(sync, "cuStreamSynchronize");
  GET(in_async, "cuMemcpyHtoDAsync_v2"); GET(out_async, "cuMemcpyDtoHAsync_v2");
  int code = cu.init(0);
  if (code && code != 100) die("cuInit: %d", code); /* 100: no device is visible */
}
void cuda_use(int ordinal) {
  int device;
  void *context;
  OK(cu.get(&device, ordinal));
  OK(cu.retain(&context, device));
  OK(cu.set(context));
}
devptr gpu_alloc(size_t n) {
  devptr p;
  OK(cu.alloc(&p, n));
  return p;
}
char *plain_alloc(size_t n) {
  char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) die("no memory for %zu bytes", n);
  return p;
}
double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
double cpu(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}
uint64_t rnd(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
void fill(void *to, size_t n, uint64_t seed) {
  uint64_t *p = to;
  for (size_t i = 0; i < n / 8; i++) p[i] = rnd(&seed);
}
char *make_file(const char *folder, const char *name, size_t n, uint64_t seed) {
  static char path[4][512];
  static int which;
  char *p = path[which++ % 4], *piece = plain_alloc(16 * MIB);
  snprintf(p, sizeof path[0], "%s/%s", folder, name);
  int fd = open(p, O_CREAT | O_TRUNC | O_RDWR, 0600);
  if (fd < 0) die("%s: %s", p, strerror(errno));
  for (size_t at = 0; at < n; at += 16 * MIB) {
    size_t m = n - at < 16 * MIB ? n - at : 16 * MIB;
    fill(piece, m, seed + at);
    if (pwrite(fd, piece, m, (off_t)at) != (ssize_t)m) die("%s: %s", p, strerror(errno));
  }
  fsync(fd);
  close(fd);
  munmap(piece, 16 * MIB);
  return p;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "", *folder = argc > 2 ? argv[2] : ".";
  setvbuf(stdout, NULL, _IOLBF, 0);
  cuda_load();
  if (!strcmp(what, "list")) return cmd_list();
  if (!strcmp(what, "find")) return cmd_find(folder);
  if (!strcmp(what, "memory")) return cmd_memory(folder);
  if (!strcmp(what, "check")) return cmd_check(folder, argc > 3 ? atol(argv[3]) : 10000);
  if (!strcmp(what, "bench")) return cmd_bench(folder);
  die("usage: phx_gpu list | find SYSFS | memory FOLDER | check FOLDER OPERATIONS | bench FOLDER");
}
