/* What must hold on a real GPU: ordinals, the life of memory, every byte. */
#include "gpu.h"

#include <stdatomic.h>
#include <strings.h>

int cmd_list(void) {
  int n = 0, device;
  char address[64];
  cu.count(&n);
  for (int i = 0; i < n; i++) {
    OK(cu.get(&device, i));
    OK(cu.address(address, sizeof address, device));
    printf("%s\n", address);
  }
  return 0;
}

/* The index that the tree gives to an address, -1: none. */
static int index_of(const char *sysfs, const char *address) {
  for (int i = 0; i < 8; i++) {
    char path[512], text[64] = "";
    snprintf(path, sizeof path, "%s/class/phxfs-generic/phxfs_dev%d/pci_bdf", sysfs, i);
    FILE *f = fopen(path, "r");
    if (!f) continue;
    if (fgets(text, sizeof text, f)) text[strcspn(text, "\n")] = 0;
    fclose(f);
    if (!strcasecmp(text, address)) return i;
  }
  return -1;
}

/* phxfs_find_dev of every ordinal against the driver's address of it. */
int cmd_find(const char *sysfs) {
  int n = 0, device;
  char address[64];
  cu.count(&n);
  for (int i = 0; i < n; i++) {
    OK(cu.get(&device, i));
    OK(cu.address(address, sizeof address, device));
    int want = index_of(sysfs, address), got = phxfs_find_dev(i);
    printf("  ordinal %d is %s: index %d\n", i, address, got);
    if (got != want) die("find_dev(%d) = %d, the tree says %d for %s", i, got, want, address);
  }
  if (phxfs_find_dev(n) != -1) die("find_dev(%d) finds something, there are %d", n, n);
  printf("ok find: %d devices visible\n", n);
  return 0;
}

static atomic_int stop;
static char *region;
static int reads_file;
static void *keep_reading(void *arg) {
  long *done = arg;
  while (!stop) {
    ssize_t n = phxfs_read(reads_file, 0, region, 0, (ssize_t)(64 * MIB), 0);
    if (n != (ssize_t)(64 * MIB)) {
      if (n != -1) die("a read during deregmem: %zd", n);
      break;
    }
    ++*done;
  }
  return NULL;
}
static void *ask_id(void *arg) { /* no context on this thread */
  unsigned long long id = 0;
  void *context = NULL;
  OK(cu.get_current(&context));
  if (context) die("a fresh thread has a context");
  OK(cu.attribute(&id, 7, *(devptr *)arg));
  return (void *)(uintptr_t)id;
}

int cmd_memory(const char *folder) {
  void *target, *id;
  pthread_t t, readers[4];
  reads_file = open(make_file(folder, "memory", 64 * MIB, 1), O_RDONLY);
  OK(phxfs_open(0));
  printf("map mode %d\n", phxfs_get_map_mode(0));
  cuda_use(0);
  devptr p = gpu_alloc(64 * MIB);
  pthread_create(&t, NULL, ask_id, &p);
  pthread_join(t, &id);
  printf("ok memory: buffer id %lu asked without a context\n", (unsigned long)(uintptr_t)id);

  region = (char *)(uintptr_t)p;
  for (int round = 0; round < 20; round++) {
    long done[4] = {0};
    OK(phxfs_regmem(0, region, 64 * MIB, &target));
    stop = 0;
    for (int i = 0; i < 4; i++) pthread_create(&readers[i], NULL, keep_reading, &done[i]);
    usleep(20000);
    OK(phxfs_deregmem(0, region, 64 * MIB));
    OK(cu.fill(p, 0x5a, 64 * MIB)); /* nothing may still be on its way */
    usleep(5000);
    char *back = plain_alloc(64 * MIB);
    OK(cu.out(back, p, 64 * MIB));
    for (size_t i = 0; i < 64 * MIB; i++)
      if (back[i] != 0x5a) die("byte %zu was written after deregmem had returned", i);
    munmap(back, 64 * MIB);
    stop = 1;
    for (int i = 0; i < 4; i++) pthread_join(readers[i], NULL);
  }
  printf("ok memory: deregmem waits for staged reads\n");

  OK(phxfs_regmem(0, region, 64 * MIB, &target));
  OK(cu.free(p));
  printf("  a read after cuMemFree gives %zd\n", phxfs_read(reads_file, 0, region, 0, 4096, 0));
  OK(phxfs_deregmem(0, region, 64 * MIB));
  p = gpu_alloc(64 * MIB);
  region = (char *)(uintptr_t)p;
  OK(phxfs_regmem(0, region, 64 * MIB, &target));
  if (phxfs_read(reads_file, 0, region, 0, (ssize_t)(64 * MIB), 0) != (ssize_t)(64 * MIB)) die("a read afterwards");
  OK(phxfs_close(0));
  printf("ok memory: cuMemFree before deregmem is harmless\n");
  return 0;
}

enum { REQUESTS = 64 };
int cmd_check(const char *folder, long operations) {
  const size_t n = 64 * MIB;
  uint64_t seed = 12345;
  char *image = plain_alloc(n), *mirror = plain_alloc(n), *back = plain_alloc(n), *path = make_file(folder, "check", n, 2);
  int in = open(path, O_RDONLY), out = open(make_file(folder, "check-out", n, 3), O_RDWR);
  void *target;
  if (pread(in, image, n, 0) != (ssize_t)n) die("pread");
  OK(phxfs_open(0));
  cuda_use(0);
  devptr p = gpu_alloc(n);
  char *gpu = (char *)(uintptr_t)p;
  OK(phxfs_regmem(0, gpu, n, &target));
  memset(mirror, 0, n);
  OK(cu.fill(p, 0, n));
  for (long op = 0; op < operations;) {
    phxfs_io_req_t q[REQUESTS];
    int count = 1 + (int)(rnd(&seed) % REQUESTS), write = rnd(&seed) % 3 == 0, way = (int)(rnd(&seed) % 3);
    if (way == 0) count = 1;
    size_t area = n / (size_t)count, largest = rnd(&seed) % 8 ? 256 * KIB : area; /* areas do not overlap */
    if (largest > area) largest = area;
    for (int i = 0; i < count; i++) {
      size_t len = 1 + rnd(&seed) % largest, at = (size_t)i * area + rnd(&seed) % (area - len + 1);
      size_t off = write ? at : rnd(&seed) % (n - len + 1);
      q[i] = (phxfs_io_req_t){write ? out : in, 0, gpu + at / 2, (off_t)(at - at / 2), len, (off_t)off, -1};
    }
    int failed = 0;
    if (way == 0) {
      q[0].result = (write ? phxfs_write : phxfs_read)(q[0].fd, 0, q[0].buf, q[0].buf_offset, (ssize_t)q[0].nbytes, q[0].f_offset);
    } else if (way == 1) {
      failed = (write ? phxfs_write_batch : phxfs_read_batch)(q, count);
    } else {
      phxfs_batch_t *h = (write ? phxfs_batch_submit_write : phxfs_batch_submit_read)(q, count);
      failed = h ? phxfs_batch_wait(h) : -1;
    }
    if (failed) die("operation %ld, way %d: %d failed", op, way, failed);
    for (int i = 0; i < count; i++, op++) {
      size_t at = (size_t)((char *)q[i].buf - gpu) + (size_t)q[i].buf_offset;
      if (q[i].result != (ssize_t)q[i].nbytes) die("operation %ld: %zd of %zu", op, q[i].result, q[i].nbytes);
      if (write) {
        if (pread(out, back, q[i].nbytes, q[i].f_offset) != (ssize_t)q[i].nbytes) die("pread");
        if (memcmp(back, mirror + at, q[i].nbytes)) die("operation %ld: wrong bytes in the file", op);
      } else {
        memcpy(mirror + at, image + q[i].f_offset, q[i].nbytes);
        OK(cu.out(back, p + at, q[i].nbytes));
        if (memcmp(back, mirror + at, q[i].nbytes)) die("operation %ld: wrong bytes on the GPU", op);
      }
    }
  }
  OK(cu.out(back, p, n));
  if (memcmp(back, mirror, n)) die("bytes that no operation named have changed");
  OK(phxfs_close(0));
  printf("ok check: %ld random transfers, every byte\n", operations);
  return 0;
}
