/* A process whose address space is limited: the library loads, what needs the
 * runtime says so and can be tried again, plain C goes on working. */
#include "t_load.h"

#include <sys/resource.h>

static bool limit(rlim_t bytes) {
  struct rlimit l = {bytes, RLIM_INFINITY};
  if (!setrlimit(RLIMIT_AS, &l)) return true;
  t_fail(__FILE__, __LINE__, "setrlimit: %s", t_errno(errno));
  return false;
}

static void child_small(void) {
  struct t_api lib;
  char b[4096];
  int fd = t_file(4096, 1), tasks = t_tasks();
  phxfs_io_req_t q = {fd, -1, b, 0, 4096, 0, 111};
  t_use_host();
  if (!limit((rlim_t)300 << 20) || !t_load(&lib)) return;
  for (int i = 0; i < 3; i++) {
    CHECK_ERR(lib.open(0), -ENOMEM, ENOMEM, "try %d", i);
    CHECK_ERR(lib.read_batch(&q, 1), -ENOMEM, ENOMEM, "try %d", i);
    CHECK_NULL(lib.submit_read(&q, 1), ENOMEM, "try %d", i);
    CHECK_NULL(lib.engine_name(), ENOMEM, "try %d", i);
    CHECK_ERR(lib.find_dev(0), -ENOMEM, ENOMEM, "try %d", i);
    CHECK_OK(lib.read(fd, -1, b, 0, 4096, 0), 4096, "plain C, try %d", i);
    CHECK_DATA(b, 4096, 1, 0, "plain C, try %d", i);
    CHECK_OK(lib.write(fd, -1, b, 0, 4096, 4096), 4096, "plain C, try %d", i);
  }
  CHECK_EQ(q.result, 111, "no result is written");
  CHECK_EQ(t_tasks(), tasks, "threads");
  if (!limit(RLIM_INFINITY)) return;
  CHECK_OK(lib.read_batch(&q, 1), 0, "without the limit");
  CHECK_OK(lib.open(0), 0, "without the limit");
  CHECK_OK(lib.close(0), 0, "without the limit");
}

static void retry_works_once_there_is_room(void) {
#ifdef __SANITIZE_ADDRESS__
  T_SKIP(NULL, "a limit of address space: AddressSanitizer needs terabytes of it");
#endif
  RUN_CHILD("small", NULL);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(retry_works_once_there_is_room)};
  static const t_case children[] = {{"small", child_small}, {0}};
  return T_RUN(argc, argv, cases, children);
}
