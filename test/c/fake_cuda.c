/* Stands in for libcuda.so.1, found by its SONAME: two GPUs, ordinal 0 at PCI address
 * 0000:1A:00.0, ordinal 1 at 0000:3b:00.0, with memory that no system call and no load reaches,
 * only copies. It is as strict as the driver: contexts belong to threads, streams to contexts, a
 * child of a process that called cuInit gets error 3. Copies are late: a question for an event
 * does one that is queued. The fake_ functions tell tests what was done. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OK, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600 };
enum { GPUS = 2, BLOCKS = 64, QUEUE = 256 };

typedef unsigned long long devptr;
struct block { /* device memory, or pinned memory (device -1) */
  char *at, *data;
  size_t size;
  devptr id;
  int device;
};
struct stream {
  int device;
  uint64_t begun, done;
  struct { char *to, *from; size_t n; } copies[QUEUE];
};
struct event { struct stream *stream; uint64_t after; };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pid_t initialized;
static struct block blocks[BLOCKS];
static int retained[GPUS], created[GPUS];
static size_t pinned, most_pinned;
static devptr ids;
static _Thread_local intptr_t current; /* context: device + 1; 0: none */

#define LOCKED for (int once = (pthread_mutex_lock(&mu), 1); once; once = (pthread_mutex_unlock(&mu), 0))

int fake_contexts(int device) { return retained[device]; }
int fake_contexts_created(int device) { return created[device]; }
size_t fake_pinned(void) { return pinned; }
size_t fake_most_pinned(void) { return most_pinned; }

int cuInit(unsigned flags) {
  if (flags) return INVALID_VALUE;
  if (initialized && initialized != getpid()) return NOT_INITIALIZED;
  initialized = getpid();
  return OK;
}
static int ready(void) { return initialized == getpid(); }
int cuDeviceGetCount(int *n) { return ready() ? (*n = GPUS, OK) : NOT_INITIALIZED; }
int cuDeviceGet(int *device, int ordinal) {
  if (ordinal < 0 || ordinal >= GPUS) return INVALID_DEVICE;
  *device = ordinal;
  return OK;
}
int cuDeviceGetPCIBusId(char *to, int len, int device) {
  if (device < 0 || device >= GPUS) return INVALID_DEVICE;
  return snprintf(to, (size_t)len, "%s", device ? "0000:3b:00.0" : "0000:1A:00.0") < len ? OK : INVALID_VALUE;
}

int cuDevicePrimaryCtxRetain(intptr_t *context, int device) {
  if (!ready() || device < 0 || device >= GPUS) return INVALID_DEVICE;
  LOCKED created[device] += !retained[device]++;
  *context = device + 1;
  return OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  int code = OK;
  LOCKED if (retained[device] > 0) retained[device]--;
  else code = INVALID_CONTEXT;
  return code;
}
int cuCtxSetCurrent(intptr_t context) { return current = context, OK; }
int cuCtxGetCurrent(intptr_t *context) { return *context = current, OK; }

static struct block *holder(const char *p, int device) {
  for (struct block *b = blocks; b < blocks + BLOCKS; b++)
    if (b->at && (b->device < 0) == (device < 0) && p >= b->at && p < b->at + b->size) return b;
  return NULL;
}
static struct block *spare(void) {
  for (struct block *b = blocks; b < blocks + BLOCKS; b++)
    if (!b->at) return b;
  return NULL;
}

int cuMemAlloc_v2(devptr *p, size_t size) {
  if (!current) return INVALID_CONTEXT;
  int fd = memfd_create("gpu", MFD_CLOEXEC), code = OUT_OF_MEMORY;
  if (fd < 0 || ftruncate(fd, (off_t)size)) return code;
  char *at = mmap(NULL, size + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  at = (char *)(((uintptr_t)at + 65535) & ~(uintptr_t)65535);
  char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  LOCKED {
    struct block *b = spare();
    if (b && at != MAP_FAILED && data != MAP_FAILED) {
      *b = (struct block){at, data, size, ++ids, (int)current - 1};
      *p = (devptr)(uintptr_t)at;
      code = OK;
    }
  }
  return code;
}
int cuMemFree_v2(devptr p) {
  int code = INVALID_VALUE;
  LOCKED {
    struct block *b = holder((char *)(uintptr_t)p, 0);
    if (b && b->at == (char *)(uintptr_t)p) {
      munmap(b->data, b->size); /* the address stays taken: nothing else must be found there */
      *b = (struct block){0};
      code = OK;
    }
  }
  return code;
}
int cuMemHostAlloc(void **p, size_t size, unsigned flags) {
  const char *limit = getenv("FAKE_CUDA_HOST_LIMIT"); /* bytes */
  int code = OUT_OF_MEMORY;
  if (!current) return INVALID_CONTEXT;
  if (flags != 1) return INVALID_VALUE;
  LOCKED {
    struct block *b = spare();
    if (b && (!limit || pinned + size <= (size_t)atoll(limit))) {
      *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      *b = (struct block){*p, *p, size, 0, -1};
      pinned += size;
      if (pinned > most_pinned) most_pinned = pinned;
      code = OK;
    }
  }
  return code;
}
int cuMemFreeHost(void *p) {
  int code = INVALID_VALUE;
  if (!current) return INVALID_CONTEXT;
  LOCKED {
    struct block *b = holder(p, -1);
    if (b && b->at == p) {
      munmap(p, b->size);
      pinned -= b->size;
      *b = (struct block){0};
      code = OK;
    }
  }
  return code;
}
int cuPointerGetAttribute(void *to, int attribute, devptr p) {
  int code = INVALID_VALUE;
  LOCKED {
    struct block *b = holder((char *)(uintptr_t)p, 0);
    if (b) code = OK;
    if (b && attribute == 2) *(unsigned *)to = 2;
    else if (b && attribute == 7) *(devptr *)to = b->id;
    else if (b && attribute == 9) *(int *)to = b->device;
    else if (b && attribute == 11) *(devptr *)to = (devptr)(uintptr_t)b->at;
    else if (b && attribute == 12) *(size_t *)to = b->size;
    else code = INVALID_VALUE;
  }
  return code;
}

int cuStreamCreate(struct stream **s, unsigned flags) {
  if (!current) return INVALID_CONTEXT;
  if (flags != 1) return INVALID_VALUE;
  *s = calloc(1, sizeof **s);
  (*s)->device = (int)current - 1;
  return OK;
}
static void step(struct stream *s) {
  uint64_t i = s->done % QUEUE;
  memcpy(s->copies[i].to, s->copies[i].from, s->copies[i].n);
  s->done++;
}
int cuStreamSynchronize(struct stream *s) {
  LOCKED while (s->done < s->begun) step(s);
  return OK;
}
int cuStreamDestroy_v2(struct stream *s) {
  int left = s->done < s->begun;
  free(s);
  return left ? INVALID_HANDLE : OK;
}
/* Both ends must lie whole in memory of their kind. */
static int queue(struct stream *s, char *device, char *host, size_t n, int out) {
  int code = OK;
  if (current != s->device + 1) return INVALID_CONTEXT;
  LOCKED {
    struct block *d = holder(device, 0), *h = holder(host, -1);
    if (!d || !h || device + n > d->at + d->size || host + n > h->at + h->size) code = INVALID_VALUE;
    else if (s->begun - s->done == QUEUE) code = INVALID_HANDLE;
    else {
      char *there = d->data + (device - d->at);
      uint64_t i = s->begun++ % QUEUE;
      s->copies[i].to = out ? host : there, s->copies[i].from = out ? there : host, s->copies[i].n = n;
    }
  }
  return code;
}
int cuMemcpyHtoDAsync_v2(devptr to, void *from, size_t n, struct stream *s) { return queue(s, (char *)(uintptr_t)to, from, n, 0); }
int cuMemcpyDtoHAsync_v2(void *to, devptr from, size_t n, struct stream *s) { return queue(s, (char *)(uintptr_t)from, to, n, 1); }
/* The test's own copies, at once and from any memory. */
static int whole(devptr p, size_t n, char **data) {
  int code = INVALID_VALUE;
  LOCKED {
    struct block *b = holder((char *)(uintptr_t)p, 0);
    if (b && p + n <= (uintptr_t)b->at + b->size) *data = b->data + (p - (uintptr_t)b->at), code = OK;
  }
  return code;
}
int cuMemcpyHtoD_v2(devptr to, const void *from, size_t n) {
  char *data;
  return whole(to, n, &data) ? INVALID_VALUE : (memcpy(data, from, n), OK);
}
int cuMemcpyDtoH_v2(void *to, devptr from, size_t n) {
  char *data;
  return whole(from, n, &data) ? INVALID_VALUE : (memcpy(to, data, n), OK);
}
int cuMemsetD8_v2(devptr to, unsigned char c, size_t n) {
  char *data;
  return whole(to, n, &data) ? INVALID_VALUE : (memset(data, c, n), OK);
}

int cuEventCreate(struct event **e, unsigned flags) {
  if (!current) return INVALID_CONTEXT;
  if (!(flags & 2)) return INVALID_VALUE;
  *e = calloc(1, sizeof **e);
  return OK;
}
int cuEventDestroy_v2(struct event *e) { return free(e), OK; }
int cuEventRecord(struct event *e, struct stream *s) {
  if (current != s->device + 1) return INVALID_CONTEXT;
  LOCKED e->stream = s, e->after = s->begun;
  return OK;
}
int cuEventQuery(struct event *e) {
  int code = OK;
  LOCKED if (e->stream && e->stream->done < e->after) {
    code = NOT_READY;
    step(e->stream);
  }
  return code;
}
int cuEventSynchronize(struct event *e) {
  LOCKED while (e->stream && e->stream->done < e->after) step(e->stream);
  return OK;
}
