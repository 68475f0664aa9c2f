/* Synchronous batches: every size, every mix, every kind of partial failure. */
#include "t.h"

#include <sys/mman.h>

static char *cpu, *dev0, *dev3; /* 24 MiB each; the last two registered */
static const size_t LEN = (size_t)24 << 20;

static char *place(int i, int *device) {
  *device = i % 3 == 0 ? -1 - i % 5 : i % 3 == 1 ? 0 : 3;
  return i % 3 == 0 ? cpu : i % 3 == 1 ? dev0 : dev3;
}

/* n requests of odd lengths at odd places, over two files, CPU and two devices. */
static void mixed(int n, size_t most) {
  int fd[2] = {t_file(1 << 20, 10), t_file(1 << 20, 11)}, out = t_file(0, 0);
  phxfs_io_req_t *q = calloc((size_t)n, sizeof *q), *was = calloc((size_t)n, sizeof *q);
  size_t room = LEN / (size_t)n;
  if (most > room) most = room;
  for (int i = 0; i < n; i++) {
    size_t at = (size_t)i * room, len = 1 + (size_t)i * 7919 % most;
    q[i].fd = fd[i % 2];
    q[i].buf = place(i, &q[i].device_id) + at / 2;
    q[i].buf_offset = (off_t)(at - at / 2);
    q[i].nbytes = len;
    q[i].f_offset = (off_t)((size_t)i * 104729 % ((1 << 20) - len));
    q[i].result = -77;
  }
  memcpy(was, q, sizeof *q * (size_t)n);
  memset(cpu, 0, LEN), memset(t_host(dev0), 0, LEN), memset(t_host(dev3), 0, LEN);
  CHECK_OK(phxfs_read_batch(q, n), 0, "n %d", n);
  for (int i = 0; i < n && !t_failed(); i++) {
    char *data = (char *)q[i].buf + q[i].buf_offset;
    CHECK_EQ(q[i].result, q[i].nbytes, "n %d, request %d", n, i);
    CHECK_DATA(data, q[i].nbytes, 10 + (uint32_t)i % 2, (uint64_t)q[i].f_offset, "n %d, request %d", n, i);
    CHECK(q[i].nbytes == room || ((char *)t_host(data))[q[i].nbytes] == 0, "n %d, request %d: the byte behind is written", n, i);
    q[i].result = -77;
    CHECK(!memcmp(&q[i], &was[i], sizeof *q), "n %d, request %d: a field besides result has changed", n, i);
    q[i].fd = out; /* and back, each to a place of its own */
    q[i].f_offset = (off_t)((size_t)i * most);
  }
  CHECK_OK(phxfs_write_batch(q, n), 0, "n %d", n);
  char *back = malloc(most);
  for (int i = 0; i < n && !t_failed(); i++) {
    CHECK_EQ(q[i].result, q[i].nbytes, "n %d, request %d", n, i);
    CHECK_EQ(pread(out, back, q[i].nbytes, q[i].f_offset), q[i].nbytes, "n %d, request %d", n, i);
    CHECK_DATA(back, q[i].nbytes, 10 + (uint32_t)i % 2, (uint64_t)was[i].f_offset, "written, n %d, request %d", n, i);
  }
  free(back), free(q), free(was);
  close(fd[0]), close(fd[1]), close(out);
}

static void every_size_and_mix(void) {
  static const int sizes[] = {1, 2, 3, 8, 31, 256, 1024, 5000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) mixed(sizes[i], 20000);
  mixed(3, 1 << 19);
}

static void short_read_counts_with_its_bytes(void) {
  int fd = t_file(10000, 1);
  phxfs_io_req_t q[4] = {{fd, -1, cpu, 0, 4096, 0, 0}, {fd, 0, dev0, 0, 4096, 8192, 0},
                         {fd, 3, dev3, 0, 4096, 10000, 0}, {fd, 0, dev0 + 8192, 0, 0, 10000, 55}};
  for (int round = 0; round < 2; round++) { /* alone and together */
    if (round == 0) {
      for (int i = 0; i < 4; i++) CHECK_OK(phxfs_read_batch(&q[i], 1), i == 1 || i == 2, "request %d alone", i);
    } else {
      CHECK_OK(phxfs_read_batch(q, 4), 2, "all four");
    }
    CHECK_EQ(q[0].result, 4096, "whole");
    CHECK_EQ(q[1].result, 10000 - 8192, "tail");
    CHECK_EQ(q[2].result, 0, "behind the end");
    CHECK_EQ(q[3].result, 0, "nothing asked, nothing failed");
    CHECK_DATA(dev0, 10000 - 8192, 1, 8192, "tail");
  }
  close(fd);
}

/* Requests large enough to be cut into slices that several threads may take:
 * the result is the contiguous prefix, whatever the slices behind it did. */
static void large_requests_end_where_the_file_ends(void) {
  static const size_t ends[] = {((size_t)8 << 20) - 1, (size_t)8 << 20, ((size_t)8 << 20) + 1, ((size_t)17 << 20) + 333, (size_t)20 << 20};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    int fd = t_file(ends[i], 5);
    size_t ask = (size_t)20 << 20;
    phxfs_io_req_t q[3] = {{fd, 0, dev0 + 1, 0, ask, 0, 0}, {fd, 3, dev3, 12345, ask, 1, 0}, {fd, -1, cpu, 0, 100, 0, 0}};
    CHECK_OK(phxfs_read_batch(q, 3), ends[i] == ask ? 1 : 2, "file of %zu bytes", ends[i]);
    CHECK_EQ(q[0].result, ends[i], "file of %zu bytes", ends[i]);
    CHECK_EQ(q[1].result, ends[i] - 1, "file of %zu bytes", ends[i]);
    CHECK_DATA(dev0 + 1, ends[i], 5, 0, "file of %zu bytes", ends[i]);
    CHECK_DATA(dev3 + 12345, ends[i] - 1, 5, 1, "file of %zu bytes", ends[i]);
    close(fd);
  }
}

static void large_requests_end_where_memory_ends(void) {
  static const size_t holes[] = {0, 4096, (size_t)8 << 20, ((size_t)9 << 20) + 4096, (size_t)16 << 20};
  size_t ask = (size_t)20 << 20;
  int fd = t_file(ask, 6), out = t_file(0, 0);
  for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
    phxfs_io_req_t q = {fd, 0, dev0, 0, ask, 0, 0};
    ssize_t want = t_before_hole(holes[i]);
    mprotect((char *)t_host(dev0) + holes[i], 4096, PROT_NONE);
    CHECK_OK(phxfs_read_batch(&q, 1), 1, "no access at %zu", holes[i]);
    CHECK_EQ(q.result, want, "read, no access at %zu", holes[i]);
    CHECK_DATA(dev0, holes[i], 6, 0, "no access at %zu", holes[i]);
    q.fd = out;
    CHECK_OK(phxfs_write_batch(&q, 1), 1, "no access at %zu", holes[i]);
    CHECK_EQ(q.result, want, "write, no access at %zu", holes[i]);
    mprotect((char *)t_host(dev0) + holes[i], 4096, PROT_READ | PROT_WRITE);
  }
  close(fd), close(out);
}

/* One after the other sees all of it, on one thread, many times. */
static void write_then_read_sees_the_write(void) {
  int fd = t_file(0, 0);
  phxfs_io_req_t w[8], r[8];
  for (int round = 0; round < 300; round++) {
    for (int i = 0; i < 8; i++) {
      t_fill(dev0 + i * 4096, 4096, (uint32_t)round, (uint64_t)i * 4096);
      w[i] = (phxfs_io_req_t){fd, 0, dev0, i * 4096, 4096, i * 4096, 0};
      r[i] = (phxfs_io_req_t){fd, 3, dev3, i * 4096, 4096, i * 4096, 0};
    }
    CHECK_OK(phxfs_write_batch(w, 8), 0, "round %d", round);
    CHECK_OK(phxfs_read_batch(r, 8), 0, "round %d", round);
    CHECK_DATA(dev3, 8 * 4096, (uint32_t)round, 0, "round %d", round);
    if (t_failed()) break;
  }
  close(fd);
}

static void nothing_stays_behind(void) {
  t_leaks before;
  mixed(500, 5000);
  t_leaks_take(&before);
  for (int i = 0; i < 20; i++) mixed(500 + i, 5000);
  CHECK_NO_LEAKS(&before, 8, 16, "40 batches");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(every_size_and_mix), T_CASE(short_read_counts_with_its_bytes),
    T_CASE(large_requests_end_where_the_file_ends), T_CASE(large_requests_end_where_memory_ends),
    T_CASE(write_then_read_sees_the_write), T_CASE(nothing_stays_behind),
  };
  void *target;
  t_use_host();
  cpu = t_map(LEN), dev0 = t_map(LEN), dev3 = t_map(LEN);
  if (phxfs_open(0) || phxfs_open(3) || phxfs_regmem(0, dev0, LEN, &target) || phxfs_regmem(3, dev3, LEN, &target)) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
