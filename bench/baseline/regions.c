/* Registrations: a list, walked under one mutex. With PHXFS_VENDOR=HOST device
 * memory is its own host address; else the phxfs device maps it. */
#define _GNU_SOURCE
#include "pool.h"

#include <errno.h>
#include <phxfs_ioctl.h>

struct region {
  struct region *next;
  int device;
  char *addr, *host;
  size_t len;
};

static struct {
  pthread_mutex_t mu;
  struct region *first;
  int fd[8], opened[8];
} all = {.mu = PTHREAD_MUTEX_INITIALIZER};

static bool host_device(void) {
  const char *v = getenv("PHXFS_VENDOR");
  return v && !strcmp(v, "HOST");
}

int phxfs_open(int d) {
  char path[64];
  int r = 0;
  if (d < 0 || d > 7) return -1;
  pthread_mutex_lock(&all.mu);
  if (!all.opened[d] && !host_device()) {
    snprintf(path, sizeof path, "/dev/phxfs_dev%d", d);
    all.fd[d] = open(path, O_RDWR | O_CLOEXEC);
    if (all.fd[d] < 0) r = -1;
  }
  if (!r) all.opened[d]++;
  pthread_mutex_unlock(&all.mu);
  return r;
}

int phxfs_close(int d) {
  if (d < 0 || d > 7 || !all.opened[d]) return -1;
  pthread_mutex_lock(&all.mu);
  if (!--all.opened[d] && !host_device()) close(all.fd[d]);
  pthread_mutex_unlock(&all.mu);
  return 0;
}

static struct phxfs_map_param arguments(const struct region *r) {
  return (struct phxfs_map_param){.dev_id = (uint64_t)r->device, .c_vaddr = (uint64_t)(uintptr_t)r->host, .c_size = r->len,
                                  .n_vaddr = (uint64_t)(uintptr_t)r->addr, .n_size = r->len};
}

static int map(struct region *r) {
  if (host_device()) {
    r->host = r->addr;
    return 0;
  }
  r->host = mmap(NULL, r->len, PROT_READ | PROT_WRITE, MAP_SHARED, all.fd[r->device], 0);
  if (r->host == MAP_FAILED) return -EFAULT;
  struct phxfs_map_param p = arguments(r);
  if (!ioctl(all.fd[r->device], PHXFS_IOC_MAP, &p)) return 0;
  munmap(r->host, r->len);
  return -EFAULT;
}

int phxfs_regmem(int d, const void *addr, size_t len, void **target) {
  if (d < 0 || d > 7 || !all.opened[d] || !addr || !target || !len || len % 65536 || (uintptr_t)addr % 65536) return -EINVAL;
  struct region *r = calloc(1, sizeof *r), *o;
  if (!r) return -ENOMEM;
  *r = (struct region){.device = d, .addr = (char *)addr, .len = len};
  int e = 0;
  pthread_mutex_lock(&all.mu);
  for (o = all.first; o && !e; o = o->next)
    if (o->device == d && o->addr < r->addr + len && r->addr < o->addr + o->len) e = -EINVAL;
  if (!e) e = map(r);
  if (!e) r->next = all.first, all.first = r, *target = r->host;
  pthread_mutex_unlock(&all.mu);
  if (e) free(r);
  return e;
}

int phxfs_deregmem(int d, const void *addr, size_t len) {
  pthread_mutex_lock(&all.mu);
  struct region **at = &all.first, *r;
  while ((r = *at) && (r->device != d || r->addr != addr || r->len != len)) at = &r->next;
  if (r) *at = r->next;
  pthread_mutex_unlock(&all.mu);
  if (!r) return -1;
  int e = 0;
  if (!host_device()) {
    struct phxfs_map_param p = arguments(r);
    e = ioctl(all.fd[d], PHXFS_IOC_UNMAP, &p) | munmap(r->host, r->len);
  }
  free(r);
  return e;
}

char *region_address(int device, const void *buf, off_t buf_offset, size_t n) {
  char *p = (char *)buf + buf_offset, *host = NULL;
  pthread_mutex_lock(&all.mu);
  for (struct region *r = all.first; r && !host; r = r->next)
    if (r->device == device && p >= r->addr && n <= r->len - (size_t)(p - r->addr) && p < r->addr + r->len) host = r->host + (p - r->addr);
  pthread_mutex_unlock(&all.mu);
  return host;
}
