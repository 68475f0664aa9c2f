/* One request that is larger than memory: --size bytes of a sparse file into
 * addresses behind which the same 64 MiB lie again and again. What counts is
 * that it is carried out, and what memory the library takes for it. */
#define _GNU_SOURCE
#include "bench.h"

static char *repeated(size_t len) {
  enum { PIECE = 64 << 20 };
  int fd = memfd_create("piece", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, PIECE)) fail("memory: %m");
  char *p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fail("%zu bytes of addresses: %m", len);
  for (size_t at = 0; at < len; at += PIECE) {
    size_t n = len - at < PIECE ? len - at : PIECE;
    if (mmap(p + at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) fail("map piece at %zu: %m", at);
  }
  close(fd);
  return p;
}

void mode_huge(const struct options *o, const struct api *a) {
  if (!o->sparse || o->write || o->count != 1) fail("mode huge reads one request, --sparse");
  char path[4096];
  snprintf(path, sizeof path, "%s.sparse", o->file);
  int fd = open(path, O_RDONLY | O_CLOEXEC | (o->direct ? O_DIRECT : 0));
  if (fd < 0) fail("%s: %m", path);
  phxfs_io_req_t q = {.fd = fd, .device_id = -1, .buf = repeated(o->size), .nbytes = o->size};
  long threads, before, after;
  struct samples s = {0};
  phxfs_io_req_t none = {.fd = fd, .device_id = -1, .buf = q.buf, .nbytes = 4096};
  if (a->read_batch(&none, 1)) fail("read: %m"); /* the library starts */
  process_size(&threads, &before);
  samples_begin(&s);
  double t = now_s();
  int r = a->read_batch(&q, 1);
  samples_add(&s, now_s() - t);
  samples_end(&s);
  process_size(&threads, &after);
  if (r || q.result != (ssize_t)o->size) fail("%zd of %zu bytes", q.result, o->size);
  printf("{\"mode\": \"huge\", \"lib\": \"%s\", \"size\": %zu, \"seconds\": %.2f, \"cpu_seconds\": %.2f, \"grown_kib\": %ld, \"threads\": %ld, ",
         o->lib, o->size, s.wall_s, s.cpu_s, (after - before) >> 10, threads);
  machine_json(stdout);
  printf("}\n");
}
