/* What a registration is: its target, its references, its neighbours. */
#include "t.h"

#include <sys/mman.h>

static int fd; /* 64 KiB of pattern 1 */

static void target_is_a_usable_mapping(void) {
  void *target = NULL;
  char *m = t_map(2 * T_PAGE);
  CHECK_OK(phxfs_regmem(0, m, 2 * T_PAGE, &target), 0, "%p", (void *)m);
  if (!t_emulated()) CHECK_EQ((intptr_t)target, (intptr_t)m, "the host's target is the address itself");
  /* Old clients pread straight into it. */
  CHECK_EQ(pread(fd, (char *)target + 4096, 8192, 0), 8192, "pread into target");
  CHECK_DATA(m + 4096, 8192, 1, 0, "seen through addr");
  CHECK_OK(phxfs_deregmem(0, m, 2 * T_PAGE), 0, "%p", (void *)m);
  m[0] = 1; /* and the memory stays the caller's */
  t_unmap(m, 2 * T_PAGE);
}

static void exact_duplicate_is_a_reference(void) {
  void *target[4] = {0};
  char *m = t_map(2 * T_PAGE);
  for (int i = 0; i < 4; i++) CHECK_OK(phxfs_regmem(0, m, 2 * T_PAGE, &target[i]), 0, "%d", i);
  for (int i = 1; i < 4; i++) CHECK_EQ((intptr_t)target[i], (intptr_t)target[0], "target of duplicate %d", i);
  for (int i = 0; i < 4; i++) {
    CHECK_OK(phxfs_read(fd, 0, m, 4096, 4096, 0), 4096, "with %d references", 4 - i);
    CHECK_OK(phxfs_deregmem(0, m, 2 * T_PAGE), 0, "reference %d", i);
  }
  CHECK_ERR(phxfs_read(fd, 0, m, 4096, 4096, 0), -1, EFAULT, "with none");
  CHECK_ERR(phxfs_deregmem(0, m, 2 * T_PAGE), -1, ENOENT, "a fifth");
  t_unmap(m, 2 * T_PAGE);
}

static void overlap_is_refused_until_the_first_is_gone(void) {
  void *target, *other = (void *)0x5a;
  char *m = t_map(4 * T_PAGE);
  CHECK_OK(phxfs_regmem(0, m + T_PAGE, 2 * T_PAGE, &target), 0, "middle");
  CHECK_ERR(phxfs_regmem(0, m, 4 * T_PAGE, &other), -EINVAL, EINVAL, "around it");
  CHECK_EQ((intptr_t)other, 0x5a, "*target_addr after a refusal");
  CHECK_OK(phxfs_deregmem(0, m + T_PAGE, 2 * T_PAGE), 0, "middle");
  CHECK_OK(phxfs_regmem(0, m, 4 * T_PAGE, &target), 0, "around it");
  CHECK_ERR(phxfs_regmem(0, m + T_PAGE, 2 * T_PAGE, &other), -EINVAL, EINVAL, "inside");
  CHECK_OK(phxfs_deregmem(0, m, 4 * T_PAGE), 0, "around");
  t_unmap(m, 4 * T_PAGE);
}

/* Neighbours touch but stay apart: no extent crosses from one into the next. */
static void neighbours_are_separate(void) {
  void *target;
  char *m = t_map(3 * T_PAGE);
  for (size_t i = 0; i < 3; i++) CHECK_OK(phxfs_regmem(0, m + i * T_PAGE, T_PAGE, &target), 0, "%zu", i);
  CHECK_OK(phxfs_read(fd, 0, m + T_PAGE, 0, (ssize_t)T_PAGE, 0), (long long)T_PAGE, "all of the middle");
  CHECK_ERR(phxfs_read(fd, 0, m + T_PAGE, 0, (ssize_t)T_PAGE + 1, 0), -1, EFAULT, "one byte into the next");
  CHECK_ERR(phxfs_read(fd, 0, m, (off_t)T_PAGE, 1, 0), -1, EFAULT, "the next, by buf_offset");
  CHECK_OK(phxfs_read(fd, 0, m, (off_t)T_PAGE, 0, 0), 0, "nothing, at the end, by buf_offset");
  CHECK_OK(phxfs_deregmem(0, m + T_PAGE, T_PAGE), 0, "middle");
  CHECK_ERR(phxfs_read(fd, 0, m + T_PAGE, 0, 1, 0), -1, EFAULT, "the hole");
  CHECK_OK(phxfs_read(fd, 0, m + 2 * T_PAGE, 0, 1, 0), 1, "right of the hole");
  CHECK_OK(phxfs_read(fd, 0, m + T_PAGE - 1, 0, 1, 0), 1, "left of the hole");
  CHECK_OK(phxfs_deregmem(0, m, T_PAGE), 0, "left");
  CHECK_OK(phxfs_deregmem(0, m + 2 * T_PAGE, T_PAGE), 0, "right");
  t_unmap(m, 3 * T_PAGE);
}

static void devices_have_tables_of_their_own(void) {
  void *target;
  char *m = t_map(2 * T_PAGE);
  CHECK_OK(phxfs_open(1), 0, "1");
  CHECK_OK(phxfs_regmem(0, m, 2 * T_PAGE, &target), 0, "0");
  CHECK_OK(phxfs_regmem(1, m, T_PAGE, &target), 0, "1: no overlap with device 0");
  CHECK_ERR(phxfs_deregmem(1, m, 2 * T_PAGE), -1, ENOENT, "device 0's range on device 1");
  CHECK_OK(phxfs_close(1), 0, "1");
  CHECK_OK(phxfs_read(fd, 0, m, 0, 4096, 0), 4096, "device 0's registration outlives device 1");
  CHECK_OK(phxfs_deregmem(0, m, 2 * T_PAGE), 0, "0");
  t_unmap(m, 2 * T_PAGE);
}

/* Thousands at once, in an order that degenerates a simple tree; each is found
 * by its first, middle and last byte, then dropped in another order. */
static void thousands_of_registrations(void) {
  enum { N = 4096 };
  void *target;
  t_leaks before;
  char *m = mmap(NULL, (2 * N + 1) * T_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  NEED(m != MAP_FAILED, "%s", t_errno(errno));
  char *at = (char *)(((uintptr_t)m + T_PAGE - 1) & ~(T_PAGE - 1));
  for (int round = 0; round < 2; round++) {
    if (round == 1) t_leaks_take(&before);
    for (size_t i = 0; i < N; i++)
      CHECK_OK(phxfs_regmem(0, at + 2 * i * T_PAGE, T_PAGE, &target), 0, "ascending %zu", i);
    for (size_t i = 0; i < N; i += 61) {
      char *r = at + 2 * i * T_PAGE;
      CHECK_OK(phxfs_read(fd, 0, r, 0, 1, 0), 1, "first byte of %zu", i);
      CHECK_OK(phxfs_read(fd, 0, r + T_PAGE / 2, 0, 1, 0), 1, "middle of %zu", i);
      CHECK_OK(phxfs_read(fd, 0, r + T_PAGE - 1, 0, 1, 0), 1, "last byte of %zu", i);
      CHECK_ERR(phxfs_read(fd, 0, r + T_PAGE, 0, 1, 0), -1, EFAULT, "behind %zu", i);
      if (i) CHECK_ERR(phxfs_read(fd, 0, r - 1, 0, 1, 0), -1, EFAULT, "before %zu", i);
      CHECK_ERR(phxfs_regmem(0, r, 2 * T_PAGE, &target), -EINVAL, EINVAL, "overlap with %zu", i);
    }
    for (size_t i = 0; i < N; i++) {
      size_t k = i * 1031 % N; /* odd: a permutation */
      CHECK_OK(phxfs_deregmem(0, at + 2 * k * T_PAGE, T_PAGE), 0, "number %zu", k);
    }
    CHECK_ERR(phxfs_read(fd, 0, at, 0, 1, 0), -1, EFAULT, "all are gone");
  }
  CHECK_NO_LEAKS(&before, 4, 16, "the second 4096 registrations");
  munmap(m, (2 * N + 1) * T_PAGE);
}

/* The host connector looks at the mapping; it does not touch pages. */
static void large_sparse_memory_is_not_filled(void) {
  size_t len = (size_t)8 << 30;
  void *target;
  char *m = mmap(NULL, len + T_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  NEED(m != MAP_FAILED, "%s", t_errno(errno));
  char *at = (char *)(((uintptr_t)m + T_PAGE - 1) & ~(T_PAGE - 1));
  long before = t_rss_kib();
  CHECK_OK(phxfs_regmem(0, at, len, &target), 0, "8 GiB");
  CHECK_OK(phxfs_read(fd, 0, at + (len - 4096), 0, 4096, 0), 4096, "its last 4096 bytes");
  CHECK_DATA(at + (len - 4096), 4096, 1, 0, "8 GiB");
  CHECK_OK(phxfs_deregmem(0, at, len), 0, "8 GiB");
  CHECK(t_rss_kib() - before < 64 << 10, "resident memory grew from %ld to %ld KiB", before, t_rss_kib());
  munmap(m, len + T_PAGE);
}

/* Nothing at all is mapped between two good mappings (not even a page of no access). */
static void a_gap_between_two_mappings_is_noticed(void) {
  void *target = (void *)0x5a;
  HOST_ONLY("what is mapped at a device's address does not matter");
  char *m = t_map(3 * T_PAGE);
  munmap(m + T_PAGE, T_PAGE);
  CHECK_ERR(phxfs_regmem(0, m, 3 * T_PAGE, &target), -EFAULT, EFAULT, "a gap in the middle");
  CHECK_ERR(phxfs_regmem(0, m + T_PAGE, 2 * T_PAGE, &target), -EFAULT, EFAULT, "a gap at the start");
  CHECK_ERR(phxfs_regmem(0, m, 2 * T_PAGE, &target), -EFAULT, EFAULT, "a gap at the end");
  CHECK_EQ((intptr_t)target, 0x5a, "*target_addr");
  CHECK_OK(phxfs_regmem(0, m + 2 * T_PAGE, T_PAGE, &target), 0, "behind the gap");
  CHECK_OK(phxfs_deregmem(0, m + 2 * T_PAGE, T_PAGE), 0, "behind the gap");
  munmap(m - T_PAGE, 2 * T_PAGE), munmap(m + 2 * T_PAGE, 2 * T_PAGE);
}

/* Two mappings side by side, and shared memory, are as good as one. */
static void any_writable_memory_can_be_registered(void) {
  void *target;
  char *m = t_map(4 * T_PAGE);
  int shm = memfd_create("shared", MFD_CLOEXEC);
  NEED(shm >= 0 && !ftruncate(shm, (off_t)(2 * T_PAGE)), "%s", t_errno(errno));
  NEED(mmap(m + T_PAGE, 2 * T_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shm, 0) != MAP_FAILED, "%s", t_errno(errno));
  CHECK_OK(phxfs_regmem(0, m, 4 * T_PAGE, &target), 0, "private, shared, private");
  CHECK_OK(phxfs_read(fd, 0, m + T_PAGE / 2, 0, (ssize_t)T_PAGE, 0), (long long)T_PAGE, "across the border");
  CHECK_DATA(m + T_PAGE / 2, T_PAGE, 1, 0, "across the border");
  CHECK_OK(phxfs_deregmem(0, m, 4 * T_PAGE), 0, "all");
  close(shm);
  t_unmap(m, 4 * T_PAGE);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(target_is_a_usable_mapping),
    T_CASE(exact_duplicate_is_a_reference),
    T_CASE(overlap_is_refused_until_the_first_is_gone),
    T_CASE(neighbours_are_separate),
    T_CASE(devices_have_tables_of_their_own),
    T_CASE(thousands_of_registrations),
    T_CASE(large_sparse_memory_is_not_filled),
    T_CASE(a_gap_between_two_mappings_is_noticed),
    T_CASE(any_writable_memory_can_be_registered),
  };
  t_use_host();
  fd = t_file(T_PAGE, 1);
  if (phxfs_open(0)) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
