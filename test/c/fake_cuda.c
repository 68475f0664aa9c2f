/* Two GPUs as far as phxfs_find_dev can see: ordinal 0 is 0000:1A:00.0, ordinal 1
 * 0000:3b:00.0. Stands in for libcuda.so.1, found by its SONAME. */
#include <stdio.h>

#define NO_DEVICE 100
#define INVALID 101

int cuInit(unsigned flags) { return flags ? INVALID : 0; }
int cuDeviceGetCount(int *n) { return *n = 2, 0; }
int cuDeviceGet(int *dev, int ordinal) {
  if (ordinal < 0 || ordinal > 1) return INVALID;
  *dev = ordinal;
  return 0;
}
int cuDeviceGetPCIBusId(char *to, int len, int dev) {
  if (dev < 0 || dev > 1) return INVALID;
  return snprintf(to, (size_t)len, "%s", dev ? "0000:3b:00.0" : "0000:1A:00.0") < len ? 0 : INVALID;
}
int cuPointerGetAttribute(void *to, int attribute, unsigned long long p) {
  (void)to, (void)attribute, (void)p;
  return INVALID; /* no memory here is the device's */
}
