/* Stands in for libcuda.so.1, found by its SONAME: two GPUs, ordinal 0 at PCI address
 * 0000:1A:00.0, ordinal 1 at 0000:3b:00.0, with memory that no system call and no load reaches,
 * only copies. It is as strict as the driver: contexts belong to threads, streams to contexts, a
 * child of a process that called cuInit gets error 3. Stricter: a stream or an event that went with
 * its context ends the program when it is used in another. Copies are late: a question for an
 * event does one that is queued. The fake_ functions tell tests what was done. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OK, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600, DESTROYED = 709 };
enum { LOST = 0xa5, GPUS = 2, BLOCKS = 64, QUEUE = 256 };

typedef unsigned long long devptr;
struct block { /* device memory, or pinned memory (device -1) */
  char *at, *data;
  size_t size;
  devptr id;
  int device, owner; /* owner: the device whose context has it */
};
struct stream {
  intptr_t context;
  uint64_t begun, done;
  struct { char *to, *from; size_t n; } copies[QUEUE];
};
struct event { intptr_t context; struct stream *stream; uint64_t after; };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pid_t initialized;
static struct block blocks[BLOCKS];
static int retained[GPUS], created[GPUS], resets[GPUS];
static char *lost[BLOCKS]; /* pinned memory that went, with the byte LOST wherever nobody has written */
static size_t lost_size[BLOCKS];
static size_t pinned, most_pinned;
static int copy_code, event_code; /* what copies and questions for events answer; 0: they work */
static devptr ids;
static _Thread_local intptr_t current; /* context: 1 + device + GPUS times its resets; 0: none */

#define LOCKED for (int once = (pthread_mutex_lock(&mu), 1); once; once = (pthread_mutex_unlock(&mu), 0))

int fake_contexts(int device) { return retained[device]; }
int fake_contexts_created(int device) { return created[device]; }
size_t fake_pinned(void) { return pinned; }
size_t fake_most_pinned(void) { return most_pinned; }
void fake_copies(int code) { LOCKED copy_code = code; }
void fake_events(int code) { LOCKED event_code = code; }

static int device_of(intptr_t context) { return (int)((context - 1) % GPUS); }
static intptr_t context_of(int device) { return 1 + device + GPUS * (intptr_t)resets[device]; }
/* May this thread work with what the context has made? */
static int usable(intptr_t made_in) {
  if (!current) return INVALID_CONTEXT;
  if (current != context_of(device_of(current))) return DESTROYED;
  if (made_in != context_of(device_of(made_in))) abort();
  return made_in == current ? OK : INVALID_CONTEXT;
}

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
  LOCKED *context = context_of(device);
  return OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  int code = OK;
  LOCKED if (retained[device] > 0) retained[device]--;
  else code = INVALID_CONTEXT;
  return code;
}
/* What the context has goes. Who retained it still has to release it. Other memory is found at once
 * where pinned memory was. */
int cuDevicePrimaryCtxReset_v2(int device) {
  if (!ready() || device < 0 || device >= GPUS) return INVALID_DEVICE;
  LOCKED {
    resets[device]++;
    for (struct block *b = blocks; b < blocks + BLOCKS; b++) {
      if (!b->at || b->owner != device) continue;
      if (b->device < 0) {
        int i = 0;
        while (lost[i]) i++;
        memset(b->at, LOST, b->size);
        lost[i] = b->at, lost_size[i] = b->size;
        pinned -= b->size;
      } else munmap(b->data, b->size);
      *b = (struct block){0};
    }
  }
  return OK;
}
/* Bytes that were written to pinned memory after it went. */
size_t fake_lost_written(void) {
  size_t n = 0;
  LOCKED for (int i = 0; i < BLOCKS && lost[i]; i++)
    for (size_t j = 0; j < lost_size[i]; j++) n += (unsigned char)lost[i][j] != LOST;
  return n;
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
  if (usable(current)) return usable(current);
  int fd = memfd_create("gpu", MFD_CLOEXEC), code = OUT_OF_MEMORY;
  if (fd < 0 || ftruncate(fd, (off_t)size)) return code;
  char *at = mmap(NULL, size + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  at = (char *)(((uintptr_t)at + 65535) & ~(uintptr_t)65535);
  char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  LOCKED {
    struct block *b = spare();
    if (b && at != MAP_FAILED && data != MAP_FAILED) {
      *b = (struct block){at, data, size, ++ids, device_of(current), device_of(current)};
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
  if (usable(current)) return usable(current);
  if (flags != 1) return INVALID_VALUE;
  LOCKED {
    struct block *b = spare();
    if (b && (!limit || pinned + size <= (size_t)atoll(limit))) {
      *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      *b = (struct block){*p, *p, size, ++ids, -1, device_of(current)};
      pinned += size;
      if (pinned > most_pinned) most_pinned = pinned;
      code = OK;
    }
  }
  return code;
}
int cuMemFreeHost(void *p) {
  int code = INVALID_VALUE;
  if (usable(current)) return usable(current);
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
    if (!b) b = holder((char *)(uintptr_t)p, -1);
    if (b) code = OK;
    if (b && attribute == 2) *(unsigned *)to = b->device < 0 ? 1 : 2;
    else if (b && attribute == 7) *(devptr *)to = b->id;
    else if (b && attribute == 9) *(int *)to = b->owner;
    else if (b && attribute == 11) *(devptr *)to = (devptr)(uintptr_t)b->at;
    else if (b && attribute == 12) *(size_t *)to = b->size;
    else code = INVALID_VALUE;
  }
  return code;
}

int cuStreamCreate(struct stream **s, unsigned flags) {
  if (usable(current)) return usable(current);
  if (flags != 1) return INVALID_VALUE;
  *s = calloc(1, sizeof **s);
  (*s)->context = current;
  return OK;
}
static void step(struct stream *s) {
  uint64_t i = s->done % QUEUE;
  memcpy(s->copies[i].to, s->copies[i].from, s->copies[i].n);
  s->done++;
}
int cuStreamSynchronize(struct stream *s) {
  if (usable(s->context)) return usable(s->context);
  LOCKED while (s->done < s->begun) step(s);
  return OK;
}
int cuStreamDestroy_v2(struct stream *s) {
  if (usable(s->context)) return usable(s->context);
  int left = s->done < s->begun;
  free(s);
  return left ? INVALID_HANDLE : OK;
}
/* Both ends must lie whole in memory of their kind. */
static int queue(struct stream *s, char *device, char *host, size_t n, int out) {
  int code = usable(s->context);
  if (code) return code;
  LOCKED {
    struct block *d = holder(device, 0), *h = holder(host, -1);
    if (copy_code) code = copy_code;
    else if (!d || !h || device + n > d->at + d->size || host + n > h->at + h->size) code = INVALID_VALUE;
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
  if (usable(current)) return usable(current);
  if (!(flags & 2)) return INVALID_VALUE;
  *e = calloc(1, sizeof **e);
  (*e)->context = current;
  return OK;
}
int cuEventDestroy_v2(struct event *e) {
  if (usable(e->context)) return usable(e->context);
  return free(e), OK;
}
int cuEventRecord(struct event *e, struct stream *s) {
  if (usable(s->context) || usable(e->context)) return usable(s->context);
  LOCKED e->stream = s, e->after = s->begun;
  return OK;
}
int cuEventQuery(struct event *e) {
  int code = usable(e->context);
  if (code) return code;
  LOCKED if (event_code) code = event_code;
  else if (e->stream && e->stream->done < e->after) {
    code = NOT_READY;
    step(e->stream);
  }
  return code;
}
int cuEventSynchronize(struct event *e) {
  int code = usable(e->context);
  if (code) return code;
  LOCKED if (event_code) code = event_code;
  else while (e->stream && e->stream->done < e->after) step(e->stream);
  return code;
}
