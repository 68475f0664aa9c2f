/* Stands before the library in the programs that are linked with it (ld's
 * --wrap), so that t_host knows their registrations. errno passes through. */
#include "t.h"

int __real_phxfs_open(int device);
int __real_phxfs_close(int device);
int __real_phxfs_regmem(int device, const void *addr, size_t len, void **target);
int __real_phxfs_deregmem(int device, const void *addr, size_t len);
int __wrap_phxfs_open(int device);
int __wrap_phxfs_close(int device);
int __wrap_phxfs_regmem(int device, const void *addr, size_t len, void **target);
int __wrap_phxfs_deregmem(int device, const void *addr, size_t len);

static atomic_int opens[8];

int __wrap_phxfs_open(int device) {
  int r = __real_phxfs_open(device);
  if (r == 0) opens[device]++;
  return r;
}

int __wrap_phxfs_close(int device) {
  int r = __real_phxfs_close(device);
  if (r == 0 && --opens[device] == 0 && t_emulated()) t_target_closed(device);
  return r;
}

int __wrap_phxfs_regmem(int device, const void *addr, size_t len, void **target) {
  int r = __real_phxfs_regmem(device, addr, len, target);
  if (r == 0 && t_emulated()) t_target_made(device, addr, len, *target);
  return r;
}

int __wrap_phxfs_deregmem(int device, const void *addr, size_t len) {
  int r = __real_phxfs_deregmem(device, addr, len);
  if (r == 0 && t_emulated()) t_target_gone(device, addr, len);
  return r;
}
