/* Opens are counted per device and process; the last close releases everything. */
#include "t.h"

static void every_open_needs_its_close(void) {
  for (int n = 1; n <= 3; n++) {
    for (int i = 0; i < n; i++) CHECK_OK(phxfs_open(2), 0, "open %d of %d", i + 1, n);
    for (int i = 0; i < n; i++) CHECK_OK(phxfs_close(2), 0, "close %d of %d", i + 1, n);
    CHECK_ERR(phxfs_close(2), -1, ENODEV, "one close more than %d opens", n);
  }
}

static void all_eight_devices_exist_and_count_apart(void) {
  for (int id = 0; id < 8; id++)
    for (int i = 0; i <= id; i++) CHECK_OK(phxfs_open(id), 0, "device %d", id);
  for (int id = 7; id >= 0; id--) {
    for (int i = 0; i <= id; i++) CHECK_OK(phxfs_close(id), 0, "device %d", id);
    CHECK_ERR(phxfs_close(id), -1, ENODEV, "device %d, after its %d closes", id, id + 1);
  }
}

static void only_the_last_close_drops_registrations(void) {
  void *target;
  char *m = t_map(T_PAGE);
  int fd = t_file(4096, 1);
  CHECK_OK(phxfs_open(0), 0, "0");
  CHECK_OK(phxfs_open(0), 0, "0");
  CHECK_OK(phxfs_regmem(0, m, T_PAGE, &target), 0, "0");
  CHECK_OK(phxfs_close(0), 0, "not the last");
  CHECK_OK(phxfs_read(fd, 0, m, 0, 4096, 0), 4096, "still open");
  CHECK_OK(phxfs_close(0), 0, "the last");
  CHECK_ERR(phxfs_read(fd, 0, m, 0, 4096, 0), -1, ENODEV, "closed");
  CHECK_ERR(phxfs_deregmem(0, m, T_PAGE), -1, ENODEV, "closed");
  CHECK_OK(phxfs_open(0), 0, "again");
  CHECK_ERR(phxfs_read(fd, 0, m, 0, 4096, 0), -1, EFAULT, "the registration is gone");
  CHECK_ERR(phxfs_deregmem(0, m, T_PAGE), -1, ENOENT, "the registration is gone");
  CHECK_OK(phxfs_regmem(0, m, T_PAGE, &target), 0, "a fresh one");
  CHECK_OK(phxfs_deregmem(0, m, T_PAGE), 0, "its only reference");
  CHECK_ERR(phxfs_deregmem(0, m, T_PAGE), -1, ENOENT, "its only reference");
  CHECK_OK(phxfs_close(0), 0, "end");
  t_unmap(m, T_PAGE);
}

static void last_close_drops_all_references_of_many_registrations(void) {
  void *target;
  enum { N = 64 };
  char *m = t_map(N * T_PAGE);
  for (int round = 0; round < 20; round++) {
    CHECK_OK(phxfs_open(5), 0, "round %d", round);
    for (int i = 0; i < N; i++)
      for (int k = 0; k <= i % 3; k++)
        CHECK_OK(phxfs_regmem(5, m + (size_t)i * T_PAGE, T_PAGE, &target), 0, "round %d, %d", round, i);
    CHECK_OK(phxfs_close(5), 0, "round %d, %d registrations", round, N);
  }
  /* Gone: one registration over all of them overlaps with nothing. */
  CHECK_OK(phxfs_open(5), 0, "again");
  CHECK_OK(phxfs_regmem(5, m, N * T_PAGE, &target), 0, "one over all");
  CHECK_OK(phxfs_close(5), 0, "end");
  m[0] = 1; /* the memory is the caller's and still there */
  t_unmap(m, N * T_PAGE);
}

static void *open_and_close(void *arg) {
  void *target;
  char *m = arg;
  for (int i = 0; i < 2000; i++) {
    int r = phxfs_open(4);
    if (r == -EBUSY) continue; /* another thread's last close is at work */
    CHECK_EQ(r, 0, "round %d", i);
    /* While this thread holds its count the device is open. */
    CHECK_EQ(phxfs_regmem(4, m, T_PAGE, &target), 0, "round %d", i);
    CHECK_EQ(phxfs_deregmem(4, m, T_PAGE), 0, "round %d", i);
    CHECK_EQ(phxfs_close(4), 0, "round %d", i);
    if (t_failed()) break;
  }
  return NULL;
}

static void threads_race_opens_and_closes(void) {
  pthread_t t[8];
  t_leaks before;
  char *m = t_map(8 * T_PAGE);
  CHECK_OK(phxfs_open(4), 0, "warm up");
  CHECK_OK(phxfs_close(4), 0, "warm up");
  t_leaks_take(&before);
  for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, open_and_close, m + (size_t)i * T_PAGE);
  for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
  CHECK_ERR(phxfs_close(4), -1, ENODEV, "all counts are given back");
  CHECK_NO_LEAKS(&before, 16, 80, "8 threads of opens and closes");
  t_unmap(m, 8 * T_PAGE);
}

static void page_size_and_find_dev(void) {
  CHECK_OK(phxfs_get_page_size(), 65536, "host");
  for (int i = 0; i < 8; i++) {
    CHECK_OK(phxfs_find_dev(i), i, "%d", i);
    CHECK_OK(phxfs_find_dev_for_cuda_gpu(i), i, "%d", i);
  }
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(every_open_needs_its_close),
    T_CASE(all_eight_devices_exist_and_count_apart),
    T_CASE(only_the_last_close_drops_registrations),
    T_CASE(last_close_drops_all_references_of_many_registrations),
    T_CASE(threads_race_opens_and_closes),
    T_CASE(page_size_and_find_dev),
  };
  t_use_host();
  return T_RUN(argc, argv, cases, NULL);
}
