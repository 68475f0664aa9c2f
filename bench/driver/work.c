#define _GNU_SOURCE
#include "bench.h"
#include "pattern.h"

static uint64_t draw(struct work *w) { /* xorshift64 */
  w->seed ^= w->seed << 13, w->seed ^= w->seed >> 7, w->seed ^= w->seed << 17;
  return w->seed;
}

static size_t memory_bytes(const struct work *w) {
  return (w->o->size * (size_t)w->o->count + 65535) & ~(size_t)65535;
}

/* Room for the memory at a multiple of 64 KiB, as registrations need it. */
static char *take(size_t len) {
  char *p = mmap(NULL, len + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("%zu bytes of memory: %m", len);
  p = (char *)(((uintptr_t)p + 65535) & ~(uintptr_t)65535);
  if (madvise(p, len, MADV_POPULATE_WRITE)) memset(p, 1, len);
  return p;
}

void work_open(struct work *w, const struct options *o, const struct api *a, uint64_t seed) {
  char path[4096];
  *w = (struct work){.o = o, .a = a, .seed = seed * 0x9e3779b97f4a7c15u + 1, .blocks = o->span / o->size};
  snprintf(path, sizeof path, "%s%s", o->file, o->write ? ".out" : o->sparse ? ".sparse" : "");
  w->fd = open(path, (o->write ? O_RDWR : O_RDONLY) | O_CLOEXEC | (o->direct ? O_DIRECT : 0));
  if (w->fd < 0) fail("%s: %m", path);
  w->memory = take(memory_bytes(w));
  w->reqs = calloc((size_t)o->count, sizeof *w->reqs);
  w->slot = calloc((size_t)o->count, sizeof *w->slot);
  if (!w->reqs || !w->slot) fail("no memory for %d requests", o->count);
  for (int i = 0; i < o->count; i++) w->slot[i] = i;
  if (o->pattern == SCATTERED) { /* no neighbours: a shuffle */
    for (int i = o->count - 1; i > 0; i--) {
      int j = (int)(draw(w) % (uint64_t)(i + 1)), t = w->slot[i];
      w->slot[i] = w->slot[j], w->slot[j] = t;
    }
  }
  if (o->registered) {
    if (!a->regmem || a->open(0)) skip("no device 0: %m");
    if (a->regmem(0, w->memory, memory_bytes(w), &w->target)) fail("register %zu bytes: %m", memory_bytes(w));
  }
  for (int i = 0; i < o->count; i++) {
    w->reqs[i] = (phxfs_io_req_t){.fd = w->fd, .device_id = o->registered ? 0 : -1, .nbytes = o->size,
                                  .buf = w->memory + (size_t)w->slot[i] * o->size};
  }
}

void work_close(struct work *w) {
  if (w->target && (w->a->deregmem(0, w->memory, memory_bytes(w)) || w->a->close(0))) fail("deregister: %m");
  close(w->fd), free(w->reqs), free(w->slot);
}

void work_aim(struct work *w) {
  int n = w->o->count;
  uint64_t first = w->o->pattern == RANDOM ? 0 : draw(w) % (w->blocks - (uint64_t)n + 1);
  for (int i = 0; i < n; i++) {
    uint64_t block = w->o->pattern == RANDOM ? draw(w) % w->blocks : first + (uint64_t)i;
    w->reqs[i].f_offset = (off_t)(block * w->o->size);
  }
}

/* Before a batch that will be checked: reads go to memory that holds none of
 * the file, writes come from memory that holds what is not in it yet. */
void work_poison(struct work *w) {
  for (int i = 0; i < w->o->count; i++) {
    if (w->o->write) pattern_fill(w->reqs[i].buf, w->o->size, (uint64_t)w->reqs[i].f_offset, w->seed);
    else memset(w->reqs[i].buf, 0xa5, w->o->size);
  }
}

void work_check(struct work *w) {
  char *back = w->o->write ? take(w->o->size) : NULL;
  for (int i = 0; i < w->o->count; i++) {
    const phxfs_io_req_t *q = &w->reqs[i];
    const void *data = q->buf;
    if (back) {
      if (pread(w->fd, back, w->o->size, q->f_offset) != (ssize_t)w->o->size) fail("read back: %m");
      data = back;
    }
    size_t wrong = w->o->sparse && !back ? w->o->size
                   : pattern_check(data, w->o->size, (uint64_t)q->f_offset, w->o->write ? w->seed : 0);
    if (wrong != w->o->size) fail("request %d at %lld of the file: wrong data from byte %zu", i, (long long)q->f_offset, wrong);
  }
  if (back) munmap(back, w->o->size);
}
