/* A call that succeeds, and a batch that returns a count, leave errno as they
 * found it: in steady state, and when it is the first call of the process, the
 * one that starts the runtime. (CHECK_OK marks errno and looks at it.) */
#include "t.h"

static void every_call_in_steady_state(void) {
  void *target;
  char *m = t_map(2 * T_PAGE);
  int fd = t_file(8192, 3);
  for (int round = 0; round < 3; round++) {
    CHECK_OK(phxfs_get_page_size(), 65536, "round %d", round);
    CHECK_OK(phxfs_find_dev(3), 3, "round %d", round);
    CHECK_OK(phxfs_io_engine_name() != NULL, 1, "round %d", round);
    CHECK_OK(phxfs_open(3), 0, "round %d", round);
    CHECK_OK(phxfs_open(3), 0, "second count, round %d", round);
    CHECK_OK(phxfs_regmem(3, m, 2 * T_PAGE, &target), 0, "round %d", round);
    CHECK_OK(phxfs_regmem(3, m, 2 * T_PAGE, &target), 0, "duplicate, round %d", round);
    CHECK_OK(phxfs_read(fd, 3, m, 0, 8192, 0), 8192, "device");
    CHECK_OK(phxfs_read(fd, 3, m, 0, 8192, 4096), 4096, "device, short at end of file");
    CHECK_OK(phxfs_read(fd, -1, m, 0, 8192, 4096), 4096, "CPU, short at end of file");
    CHECK_OK(phxfs_read(fd, -1, m, 0, 16, 1 << 20), 0, "CPU, behind end of file");
    CHECK_OK(phxfs_read(-1, -1, m, 0, 0, 0), 0, "CPU, nothing");
    CHECK_OK(phxfs_read(-1, 3, m, 0, 0, 0), 0, "device, nothing");
    CHECK_OK(phxfs_write(fd, 3, m, 0, 4096, 4096), 4096, "device");
    CHECK_OK(phxfs_write(fd, -1, m, 0, 4096, 4096), 4096, "CPU");
    phxfs_io_req_t q[3] = {{fd, 3, m, 0, 4096, 0, 0}, {-1, 3, m, 0, 4096, 0, 0}, {fd, 6, m, 0, 16, 0, 0}};
    CHECK_OK(phxfs_read_batch(q, 1), 0, "one good request");
    CHECK_OK(phxfs_read_batch(q, 3), 2, "a count of failed requests");
    CHECK_OK(phxfs_write_batch(q, 3), 2, "a count of failed requests");
    phxfs_batch_t *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    CHECK_OK((a = phxfs_batch_submit_read(q, 3)) != NULL, 1, "submit with a bad request");
    CHECK_OK((b = phxfs_batch_submit_write(q, 1)) != NULL, 1, "submit");
    CHECK_OK((c = phxfs_batch_submit_read(NULL, 0)) != NULL, 1, "submit of nothing");
    CHECK_OK((d = phxfs_batch_submit_read(q + 2, 1)) != NULL, 1, "submit of one bad request");
    CHECK_OK(phxfs_batch_wait(a), 2, "a count");
    CHECK_OK(phxfs_batch_destroy(b), 0, "destroy");
    CHECK_OK(phxfs_batch_wait(c), 0, "nothing");
    CHECK_OK(phxfs_batch_wait(d), 1, "a count");
    CHECK_OK(phxfs_deregmem(3, m, 2 * T_PAGE), 0, "reference");
    CHECK_OK(phxfs_deregmem(3, m, 2 * T_PAGE), 0, "last");
    CHECK_OK(phxfs_close(3), 0, "count");
    CHECK_OK(phxfs_close(3), 0, "last");
  }
}

/* Each of these runs as the first call of a process of its own. */
static void first_open(void) { CHECK_OK(phxfs_open(0), 0, "first call"); }
static void first_page_size(void) { CHECK_OK(phxfs_get_page_size(), 65536, "first call"); }
static void first_find_dev(void) { CHECK_OK(phxfs_find_dev(7), 7, "first call"); }
static void first_engine_name(void) { CHECK_OK(phxfs_io_engine_name() != NULL, 1, "first call"); }
static void first_cpu_read(void) {
  char b[16];
  int fd = t_file(16, 1);
  CHECK_OK(phxfs_read(fd, -1, b, 0, 16, 0), 16, "first call");
  CHECK_OK(phxfs_write(fd, -1, b, 0, 16, 0), 16, "second call");
}
static void first_batch(void) {
  char b[16];
  phxfs_io_req_t q = {t_file(8, 1), -1, b, 0, 16, 0, 0};
  CHECK_OK(phxfs_read_batch(&q, 1), 1, "first call, short read");
}
static void first_submit(void) {
  char b[16];
  phxfs_io_req_t q = {t_file(16, 1), -1, b, 0, 16, 0, 0};
  phxfs_batch_t *h = NULL;
  CHECK_OK((h = phxfs_batch_submit_write(&q, 1)) != NULL, 1, "first call");
  CHECK_OK(phxfs_batch_wait(h), 0, "second call");
}
/* Failures as the first call have their errno all the same. */
static void first_failures(void) {
  CHECK_ERR(phxfs_batch_wait((phxfs_batch_t *)16), -EINVAL, EINVAL, "first call");
  CHECK_ERR(phxfs_close(0), -1, ENODEV, "second call");
}

static const t_case children[] = {
  T_CASE(first_open), T_CASE(first_page_size), T_CASE(first_find_dev), T_CASE(first_engine_name),
  T_CASE(first_cpu_read), T_CASE(first_batch), T_CASE(first_submit), T_CASE(first_failures), {0}};

static void first_call_of_the_process(void) {
  for (const t_case *c = children; c->name; c++) RUN_CHILD(c->name, NULL);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(every_call_in_steady_state), T_CASE(first_call_of_the_process)};
  t_use_host();
  return T_RUN(argc, argv, cases, children);
}
