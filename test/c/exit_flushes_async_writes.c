/* A normal exit lets accepted async batches finish, and refuses new calls. */
#include "t.h"
#include "t_barrier.h"

#include <fcntl.h>

enum { BATCHES = 16, REQS = 4 };
static const size_t PIECE = 1 << 20; /* 64 MiB in all: not done when exit begins */

/* In the child: the file comes from the parent, named by descriptor. */
static void submit_everything(bool device) {
  static phxfs_io_req_t q[BATCHES][REQS];
  int fd = atoi(getenv("OUT_FD"));
  size_t all = BATCHES * REQS * PIECE;
  char *m = t_map(all);
  void *target;
  if (device) {
    CHECK_OK(phxfs_open(0), 0, "0");
    CHECK_OK(phxfs_regmem(0, m, all, &target), 0, "64 MiB");
  }
  t_fill(m, all, 21, 0);
  for (size_t b = 0; b < BATCHES; b++) {
    for (size_t i = 0; i < REQS; i++) {
      off_t at = (off_t)((b * REQS + i) * PIECE);
      q[b][i] = (phxfs_io_req_t){fd, device ? 0 : -1, m, at, PIECE, at, 0};
    }
    NEED(phxfs_batch_submit_write(q[b], REQS), "batch %zu: %s", b, t_errno(errno));
  }
}

static void child_return(void) { submit_everything(false); }
static void child_return_device(void) { submit_everything(true); }
static void child_exit(void) {
  submit_everything(true);
  exit(0);
}
static void *exit_here(void *arg) {
  (void)arg;
  exit(0);
}
static void child_exit_from_a_thread(void) {
  pthread_t t;
  submit_everything(true);
  pthread_create(&t, NULL, exit_here, NULL);
  pthread_join(t, NULL); /* never returns */
}
/* exit while another thread is inside wait. */
static void *wait_here(void *h) {
  phxfs_batch_wait(h);
  return NULL;
}
static void child_exit_with_a_waiter_inside(void) {
  static phxfs_io_req_t q;
  pthread_t t;
  submit_everything(false);
  q = (phxfs_io_req_t){atoi(getenv("OUT_FD")), -1, &q, 0, 0, 0, 0};
  phxfs_batch_t *h = NULL;
  CHECK(T_EVENTUALLY((h = phxfs_batch_submit_write(&q, 1)) != NULL), "a 17th batch");
  pthread_create(&t, NULL, wait_here, h);
  exit(0);
}

/* A write stands still in another thread when exit begins; it is let go only
 * when new calls are refused, which shows that exit is waiting. */
static t_barrier barrier;
static void *write_stuck(void *m) {
  phxfs_io_req_t q = {atoi(getenv("OUT_FD")), 0, m, 0, T_PAGE, 0, 0};
  phxfs_write_batch(&q, 1);
  return NULL;
}
static void *release_when_refused(void *arg) {
  (void)arg;
  CHECK(T_EVENTUALLY(phxfs_find_dev(0) == -ESHUTDOWN), "calls are refused while exit waits");
  t_barrier_release(&barrier);
  return NULL;
}
static void child_exit_with_a_call_inside(void) {
  pthread_t t[2];
  void *target;
  char *m = t_map(T_PAGE);
  CHECK_OK(phxfs_open(0), 0, "0");
  CHECK_OK(phxfs_regmem(0, m, T_PAGE, &target), 0, "registration");
  NEED_BARRIER(&barrier, m, T_PAGE);
  pthread_create(&t[0], NULL, write_stuck, m);
  CHECK(t_barrier_reached(&barrier), "the write stands");
  pthread_create(&t[1], NULL, release_when_refused, NULL);
  exit(0);
}

static void exits(const char *entry) {
  int fd = t_file(0, 0), keep = dup(fd); /* dup: not close-on-exec */
  char out[32];
  size_t all = BATCHES * REQS * PIECE;
  snprintf(out, sizeof out, "OUT_FD=%d", keep);
  RUN_CHILD(entry, out);
  char *b = malloc(all);
  CHECK_EQ(pread(fd, b, all, 0), all, "%s: bytes in the file after exit", entry);
  CHECK_DATA(b, all, 21, 0, "%s: the file after exit", entry);
  free(b);
  close(fd), close(keep);
}

static void return_from_main(void) { exits("return"); }
static void return_from_main_registered_memory(void) { exits("return_device"); }
static void exit_call(void) { exits("exit"); }
static void exit_from_another_thread(void) { exits("exit_from_a_thread"); }
static void exit_waits_for_calls_inside(void) {
  int fd = t_file(0, 0), keep = dup(fd);
  char out[32], *b = malloc(T_PAGE);
  snprintf(out, sizeof out, "OUT_FD=%d", keep);
  RUN_CHILD("exit_with_a_call_inside", out);
  if (!t_skipped()) CHECK_EQ(pread(fd, b, T_PAGE, 0), T_PAGE, "bytes written by the call that was inside");
  free(b);
  close(fd), close(keep);
}
static void exit_with_a_waiter_inside(void) { exits("exit_with_a_waiter_inside"); }

/* Exit handlers run last in, first out: this one, registered before the first
 * call of the library, runs when the library's own has finished. */
static phxfs_batch_t *submitted;
static char *registered;
static int file;
static void calls_after_exit_began(void) {
  void *target = NULL;
  phxfs_io_req_t q = {file, 0, registered, 0, 16, 0, 111};
  CHECK_ERR(phxfs_open(1), -ESHUTDOWN, ESHUTDOWN, "open");
  CHECK_ERR(phxfs_find_dev(1), -ESHUTDOWN, ESHUTDOWN, "find_dev");
  CHECK_ERR(phxfs_regmem(0, registered + T_PAGE, T_PAGE, &target), -ESHUTDOWN, ESHUTDOWN, "regmem");
  CHECK_ERR(phxfs_deregmem(0, registered, T_PAGE), -ESHUTDOWN, ESHUTDOWN, "deregmem");
  CHECK_ERR(phxfs_read(file, 0, registered, 0, 16, 0), -ESHUTDOWN, ESHUTDOWN, "read, device");
  CHECK_ERR(phxfs_write(file, 0, registered, 0, 16, 0), -ESHUTDOWN, ESHUTDOWN, "write, device");
  CHECK_ERR(phxfs_read(file, -1, registered, 0, 16, 0), -ESHUTDOWN, ESHUTDOWN, "read, CPU");
  CHECK_ERR(phxfs_write(file, -1, registered, 0, 16, 0), -ESHUTDOWN, ESHUTDOWN, "write, CPU");
  CHECK_ERR(phxfs_read_batch(&q, 1), -ESHUTDOWN, ESHUTDOWN, "read_batch");
  CHECK_ERR(phxfs_write_batch(&q, 1), -ESHUTDOWN, ESHUTDOWN, "write_batch");
  CHECK_NULL(phxfs_batch_submit_read(&q, 1), ESHUTDOWN, "submit_read");
  CHECK_NULL(phxfs_batch_submit_write(&q, 1), ESHUTDOWN, "submit_write");
  CHECK_ERR(phxfs_batch_wait(submitted), -ESHUTDOWN, ESHUTDOWN, "wait");
  CHECK_ERR(phxfs_batch_destroy(submitted), -ESHUTDOWN, ESHUTDOWN, "destroy");
  CHECK_NULL(phxfs_io_engine_name(), ESHUTDOWN, "engine_name");
  CHECK_ERR(phxfs_close(0), -ESHUTDOWN, ESHUTDOWN, "close");
  CHECK_EQ(q.result, 111, "no result is written");
  int ran = atoi(getenv("RAN_FD"));
  CHECK_EQ(write(ran, "x", 1), 1, "tell the parent");
}
static void child_calls_after_exit(void) {
  static phxfs_io_req_t q;
  void *target;
  atexit(calls_after_exit_began);
  registered = t_map(2 * T_PAGE), file = t_file(4096, 1);
  CHECK_OK(phxfs_open(0), 0, "0");
  CHECK_OK(phxfs_regmem(0, registered, T_PAGE, &target), 0, "0");
  q = (phxfs_io_req_t){file, 0, registered, 0, 4096, 0, 111};
  submitted = phxfs_batch_submit_read(&q, 1);
  CHECK(submitted != NULL, "submit: %s", t_errno(errno));
}

static void new_calls_are_refused_once_exit_has_begun(void) {
  int fd = t_file(0, 0), keep = dup(fd);
  char ran[32], c = 0;
  snprintf(ran, sizeof ran, "RAN_FD=%d", keep);
  RUN_CHILD("calls_after_exit", ran);
  CHECK_EQ(pread(fd, &c, 1, 0), 1, "the child's own exit handler ran to its end");
  close(fd), close(keep);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(return_from_main), T_CASE(return_from_main_registered_memory), T_CASE(exit_call),
    T_CASE(exit_from_another_thread), T_CASE(exit_with_a_waiter_inside),
    T_CASE(exit_waits_for_calls_inside),
    T_CASE(new_calls_are_refused_once_exit_has_begun),
  };
  static const t_case children[] = {
    {"return", child_return}, {"return_device", child_return_device}, {"exit", child_exit},
    {"exit_from_a_thread", child_exit_from_a_thread}, {"exit_with_a_waiter_inside", child_exit_with_a_waiter_inside},
    {"exit_with_a_call_inside", child_exit_with_a_call_inside}, {"calls_after_exit", child_calls_after_exit}, {0}};
  t_use_host();
  return T_RUN(argc, argv, cases, children);
}
