/* The file that is read: every 8 bytes of it say where they are. A file that
 * is written is another one, beside it. */
#include "bench.h"
#include "pattern.h"

static void fill(int fd, size_t from, size_t to) {
  enum { PIECE = 4 << 20 };
  char *p = malloc(PIECE);
  for (; from < to; from += PIECE) {
    size_t n = to - from < PIECE ? to - from : PIECE;
    pattern_fill(p, n, from, 0);
    if (pwrite(fd, p, n, (off_t)from) != (ssize_t)n) fail("fill the file: %m");
  }
  free(p);
}

/* Reads what is not in the page cache. */
static void warm(int fd, size_t len) {
  enum { PIECE = 64 << 20 };
  char *p = malloc(PIECE);
  unsigned char *in = malloc(PIECE / 4096);
  for (size_t at = 0; at < len; at += PIECE) {
    size_t n = len - at < PIECE ? len - at : PIECE;
    void *m = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, (off_t)at);
    if (m == MAP_FAILED || mincore(m, n, in)) fail("look at the page cache: %m");
    munmap(m, n);
    bool whole = true;
    for (size_t i = 0; i < (n + 4095) / 4096; i++) whole &= in[i] & 1;
    if (!whole && pread(fd, p, n, (off_t)at) != (ssize_t)n) fail("read the file: %m");
  }
  free(p), free(in);
}

void file_prepare(const struct options *o) {
  char path[4096];
  struct stat st;
  snprintf(path, sizeof path, "%s%s", o->file, o->write ? ".out" : o->sparse ? ".sparse" : "");
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || fstat(fd, &st)) fail("%s: %m", path);
  if ((size_t)st.st_size < o->span) {
    if (o->sparse) {
      if (ftruncate(fd, (off_t)o->span)) fail("%s: make it %zu bytes long: %m", path, o->span);
    } else {
      fill(fd, (size_t)st.st_size & ~(size_t)4095, o->span);
    }
    if (fsync(fd)) fail("%s: fsync: %m", path);
  }
  if (!o->direct && !o->sparse) warm(fd, o->span);
  close(fd);
}
