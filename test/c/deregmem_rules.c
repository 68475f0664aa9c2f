/* Giving a registration back: only by its exact address and length, once for
 * each reference, and never while somebody else is mistaken for it. */
#include "t.h"

static int fd; /* 64 KiB of pattern 1 */

static void only_the_exact_pair_counts(void) {
  void *target;
  char *m = t_map(6 * T_PAGE), *r = m + T_PAGE;
  CHECK_OK(phxfs_regmem(0, r, 4 * T_PAGE, &target), 0, "4 pages");
  for (size_t page = 0; page < 6; page++)
    for (size_t len = 1; len <= 6 - page; len++)
      if (!(page == 1 && len == 4))
        CHECK_ERR(phxfs_deregmem(0, m + page * T_PAGE, len * T_PAGE), -1, ENOENT, "page %zu, %zu pages", page, len);
  CHECK_OK(phxfs_read(fd, 0, r, 0, 4096, 0), 4096, "it is still there");
  CHECK_OK(phxfs_deregmem(0, r, 4 * T_PAGE), 0, "the exact pair");
  CHECK_ERR(phxfs_deregmem(0, r, 4 * T_PAGE), -1, ENOENT, "again");
  t_unmap(m, 6 * T_PAGE);
}

static void wrong_attempts_cost_no_reference(void) {
  void *target;
  char *m = t_map(2 * T_PAGE);
  CHECK_OK(phxfs_regmem(0, m, 2 * T_PAGE, &target), 0, "first");
  CHECK_OK(phxfs_regmem(0, m, 2 * T_PAGE, &target), 0, "second");
  CHECK_ERR(phxfs_deregmem(0, m, T_PAGE), -1, ENOENT, "half");
  CHECK_ERR(phxfs_deregmem(0, m + T_PAGE, T_PAGE), -1, ENOENT, "other half");
  CHECK_ERR(phxfs_deregmem(3, m, 2 * T_PAGE), -1, ENODEV, "device not open");
  CHECK_OK(phxfs_deregmem(0, m, 2 * T_PAGE), 0, "one");
  CHECK_OK(phxfs_read(fd, 0, m, 0, 4096, 0), 4096, "one reference is left");
  CHECK_OK(phxfs_deregmem(0, m, 2 * T_PAGE), 0, "two");
  CHECK_ERR(phxfs_read(fd, 0, m, 0, 4096, 0), -1, EFAULT, "none is left");
  t_unmap(m, 2 * T_PAGE);
}

static void io_is_refused_afterwards_in_every_call(void) {
  void *target;
  char *m = t_map(T_PAGE);
  CHECK_OK(phxfs_regmem(0, m, T_PAGE, &target), 0, "m");
  CHECK_OK(phxfs_deregmem(0, m, T_PAGE), 0, "m");
  memset(m, 7, T_PAGE);
  phxfs_io_req_t q = {fd, 0, m, 0, 4096, 0, 0};
  CHECK_ERR(phxfs_read(fd, 0, m, 0, 4096, 0), -1, EFAULT, "read");
  CHECK_ERR(phxfs_write(fd, 0, m, 0, 4096, 0), -1, EFAULT, "write");
  CHECK_OK(phxfs_read_batch(&q, 1), 1, "read_batch");
  CHECK_EQ(q.result, -EFAULT, "read_batch");
  CHECK_OK(phxfs_write_batch(&q, 1), 1, "write_batch");
  CHECK_EQ(q.result, -EFAULT, "write_batch");
  q.result = 0;
  phxfs_batch_t *h = phxfs_batch_submit_read(&q, 1);
  CHECK(h != NULL, "submit: %s", t_errno(errno));
  CHECK_EQ(q.result, -EFAULT, "submit_read");
  CHECK_OK(phxfs_batch_wait(h), 1, "wait");
  for (size_t i = 0; i < T_PAGE; i++)
    if (m[i] != 7) {
      CHECK(m[i] == 7, "byte %zu of the memory has changed", i);
      break;
    }
  t_unmap(m, T_PAGE);
}

/* The same pages come and go thousands of times, data right each time. */
static void register_again_at_once(void) {
  void *target;
  t_leaks before;
  char *m = t_map(T_PAGE);
  for (int i = 0; i < 3000; i++) {
    if (i == 100) t_leaks_take(&before);
    CHECK_OK(phxfs_regmem(0, m, T_PAGE, &target), 0, "round %d", i);
    CHECK_OK(phxfs_read(fd, 0, m, i % 4096, 4096, i), 4096, "round %d", i);
    CHECK_DATA(m + i % 4096, 4096, 1, (uint64_t)i, "round %d", i);
    CHECK_OK(phxfs_deregmem(0, m, T_PAGE), 0, "round %d", i);
    if (t_failed()) return;
  }
  CHECK_NO_GROWTH(&before, 6144, "2900 registrations of one page");
  t_unmap(m, T_PAGE);
}

/* What is unmapped after its dereg can be mapped anew and registered again. */
static void memory_can_be_freed_after_the_last_dereg(void) {
  void *target;
  for (int i = 0; i < 50; i++) {
    char *m = t_map(4 * T_PAGE);
    CHECK_OK(phxfs_regmem(0, m, 4 * T_PAGE, &target), 0, "round %d", i);
    CHECK_OK(phxfs_deregmem(0, m, 4 * T_PAGE), 0, "round %d", i);
    t_unmap(m, 4 * T_PAGE);
    if (!t_emulated()) CHECK_ERR(phxfs_regmem(0, m, 4 * T_PAGE, &target), -EFAULT, EFAULT, "unmapped, round %d", i);
  }
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(only_the_exact_pair_counts),
    T_CASE(wrong_attempts_cost_no_reference),
    T_CASE(io_is_refused_afterwards_in_every_call),
    T_CASE(register_again_at_once),
    T_CASE(memory_can_be_freed_after_the_last_dereg),
  };
  t_use_host();
  fd = t_file(T_PAGE, 1);
  if (phxfs_open(0)) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
