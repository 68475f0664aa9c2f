/* Stands in for libamdhip64.so: the GPUs of fake_cuda.c under HIP's names, and under CUDA's for
 * what tests do themselves. As strict where HIP is: a thread has a device, not a context. It is
 * stricter where HIP is careless: a copy at an address that it does not know ends the program. */
#include "fake_cuda.c"

enum { HIP_DEVICE = 2, HIP_OLD_DEVICE = 1 }; /* hipMemoryTypeDevice, since ROCm 6 and before */

/* FAKE_HIP_INIT: what hipInit answers. */
int hipInit(unsigned flags) {
  const char *code = getenv("FAKE_HIP_INIT");
  return code ? atoi(code) : cuInit(flags);
}
int hipGetDeviceCount(int *n) { return cuDeviceGetCount(n); }
int hipDeviceGetPCIBusId(char *to, int len, int device) { return cuDeviceGetPCIBusId(to, len, device); }
const char *hipGetErrorString(int code) { return code == NOT_READY ? "device not ready" : "unknown"; }
int hipSetDevice(int device) {
  if (!ready()) return NOT_INITIALIZED;
  return device < 0 || device >= GPUS ? INVALID_DEVICE : cuCtxSetCurrent(context_of(device));
}
int hipPointerGetAttribute(void *to, int attribute, void *p) {
  int code = cuPointerGetAttribute(to, attribute, (devptr)(uintptr_t)p);
  if (code == OK && attribute == 2 && *(unsigned *)to == HIP_DEVICE && getenv("FAKE_HIP_ROCM5")) *(unsigned *)to = HIP_OLD_DEVICE;
  return code;
}
int hipHostMalloc(void **p, size_t size, unsigned flags) { return flags ? INVALID_VALUE : cuMemHostAlloc(p, size, 1); }
int hipHostFree(void *p) { return cuMemFreeHost(p); }
int hipStreamCreateWithFlags(struct stream **s, unsigned flags) { return cuStreamCreate(s, flags); }
int hipStreamDestroy(struct stream *s) { return cuStreamDestroy_v2(s); }
int hipStreamSynchronize(struct stream *s) { return cuStreamSynchronize(s); }
int hipEventCreateWithFlags(struct event **e, unsigned flags) { return flags ? INVALID_VALUE : cuEventCreate(e, 2); }
int hipEventDestroy(struct event *e) { return cuEventDestroy_v2(e); }
int hipEventRecord(struct event *e, struct stream *s) { return cuEventRecord(e, s); }
int hipEventQuery(struct event *e) { return cuEventQuery(e); }
int hipEventSynchronize(struct event *e) { return cuEventSynchronize(e); }
int hipMemcpyAsync(void *to, void *from, size_t n, int kind, struct stream *s) {
  if (kind != 1 && kind != 2) return INVALID_VALUE;
  int code = kind == 1 ? queue(s, to, from, n, 0) : queue(s, from, to, n, 1);
  if (code == INVALID_VALUE) abort();
  return code;
}
