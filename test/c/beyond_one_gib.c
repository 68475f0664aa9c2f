/* Transfers above the 1 GiB piece and above what one system call can move (2 GiB)
 * and 32 bits can count: single, in a sync and in an async batch. */
#include "t.h"

#include <fcntl.h>
#include <sys/mman.h>

#define GIB ((size_t)1 << 30)
static const size_t EDGE = 65536; /* bytes of pattern on either side of 1 GiB */

/* A sparse file with data only around 1 GiB, and at its end. */
static int sparse(size_t size) {
  int fd = t_file(0, 0);
  char *b = malloc(2 * EDGE);
  t_fill(b, 2 * EDGE, 1, GIB - EDGE);
  if (ftruncate(fd, (off_t)size) || pwrite(fd, b, 2 * EDGE, (off_t)(GIB - EDGE)) != (ssize_t)(2 * EDGE)) CHECK(0, "%s", t_errno(errno));
  free(b);
  int direct = t_reopen(fd, O_RDONLY | O_DIRECT); /* where it works: no gigabyte of page cache */
  if (direct < 0) return fd;
  close(fd);
  return direct;
}

static void data_is_right_across_the_first_gib(void) {
  size_t n = GIB + EDGE;
  int fd = sparse(n);
  void *target;
  char *m = mmap(NULL, n + 2 * T_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  NEED(m != MAP_FAILED, "%s", t_errno(errno));
  char *at = (char *)(((uintptr_t)m + T_PAGE - 1) & ~(T_PAGE - 1));
  madvise(m, n + 2 * T_PAGE, MADV_HUGEPAGE); /* only for speed */
  CHECK_OK(phxfs_open(0), 0, "0");
  CHECK_OK(phxfs_regmem(0, at, n + T_PAGE, &target), 0, "1 GiB and a little");
  CHECK_OK(phxfs_read(fd, 0, at, 0, (ssize_t)n + 4096, 0), (long long)n, "one read, to the end of the file");
  CHECK_DATA(at + (GIB - EDGE), 2 * EDGE, 1, GIB - EDGE, "around 1 GiB");
  CHECK_EQ(at[GIB / 2], 0, "the hole");
  CHECK_OK(phxfs_close(0), 0, "0");
  munmap(m, n + 2 * T_PAGE);
  close(fd);
}

/* /dev/null takes every count and looks at no byte: large counts, no memory. */
static void counts_beyond_four_gib(void) {
  size_t n = 4 * GIB + 12345, all = 5 * GIB;
  char *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  NEED(p != MAP_FAILED, "%s", t_errno(errno));
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  CHECK_OK(phxfs_write(null, -1, p, 0, (ssize_t)n, 0), (long long)n, "single write");
  phxfs_io_req_t q[2] = {{null, -1, p, 0, n, 0, 0}, {null, -1, p, 0, all, 0, 0}};
  CHECK_OK(phxfs_write_batch(q, 2), 0, "write_batch");
  CHECK_EQ(q[0].result, n, "write_batch");
  CHECK_EQ(q[1].result, all, "write_batch");
  q[0].result = q[1].result = 0;
  phxfs_batch_t *h = phxfs_batch_submit_write(q, 2);
  CHECK_OK(phxfs_batch_wait(h), 0, "submit_write");
  CHECK_EQ(q[0].result, n, "submit_write");
  CHECK_EQ(q[1].result, all, "submit_write");
  munmap(p, all);
  close(null);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(data_is_right_across_the_first_gib), T_CASE(counts_beyond_four_gib)};
  t_use_host();
  return T_RUN(argc, argv, cases, NULL);
}
