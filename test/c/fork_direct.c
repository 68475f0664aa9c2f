/* Batches on O_DIRECT files without io_uring, which use contexts of Linux AIO: a
 * child does not use those that its parent made, and the parent keeps them. */
#include "fork_kit.h"

#include <fcntl.h>

enum { BLOCK = 4096, BLOCKS = 16 };
static int direct;
static char *memory;

static void batches(void *who) {
  phxfs_io_req_t q[BLOCKS];
  for (int round = 0; round < 3; round++) {
    memset(memory, 0, T_PAGE);
    for (int i = 0; i < BLOCKS; i++) q[i] = (phxfs_io_req_t){direct, -1, memory + i * BLOCK, 0, BLOCK, i * BLOCK, 0};
    if (round % 2) {
      CHECK_OK(phxfs_batch_wait(phxfs_batch_submit_read(q, BLOCKS)), 0, "%s", (char *)who);
    } else {
      CHECK_OK(phxfs_read_batch(q, BLOCKS), 0, "%s", (char *)who);
    }
    CHECK_DATA(memory, T_PAGE, 1, 0, "%s, round %d", (char *)who, round);
  }
}

static void generations(void *left) {
  batches("before the fork");
  if (left) CHECK_EXIT(t_fork(generations, (char *)left - 1), 0, "a child");
  batches("after the fork");
}

static void children_of_children_read(void) {
  NEED_RESET();
  char path[64];
  kit_make();
  snprintf(path, sizeof path, "/proc/self/fd/%d", kit_fd);
  direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (direct < 0) T_SKIP("odirect", "O_DIRECT in the folder of temporary files: %s", t_errno(errno));
  memory = t_map(T_PAGE);
  CHECK_EQ(strcmp(phxfs_io_engine_name(), "sync"), 0, "the engine");
  generations((char *)2);
}

static const t_case cases[] = {T_CASE(children_of_children_read)};

int main(int argc, char **argv) {
  setenv("PHXFS_IO_ENGINE", "sync", 1);
  return T_RUN(argc, argv, cases, NULL);
}
