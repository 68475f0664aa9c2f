/* A mapping of a file that is truncated meanwhile: the kernel's copy fails with
 * EFAULT, the host's own access gets SIGBUS in the host's handler. */
#include "t_signals.h"

static int fd;

static void story(void) {
  struct sigaction a = {.sa_sigaction = t_note, .sa_flags = SA_SIGINFO};
  int file = memfd_create("target", MFD_CLOEXEC);
  void *target = NULL;
  bool late = getenv("LATE") != NULL;
  t_use_host();
  fd = t_file(4 * T_PAGE, 1);
  if (!late) sigaction(SIGBUS, &a, NULL);
  if (ftruncate(file, 4 * T_PAGE)) abort();
  char *m = t_map(4 * T_PAGE);
  m = mmap(m, 4 * T_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  CHECK_OK(phxfs_open(0), 0, "host");
  CHECK_OK(phxfs_regmem(0, m, 4 * T_PAGE, &target), 0, "a mapped file");
  CHECK_OK(phxfs_read(fd, 0, m, 0, 4 * T_PAGE, 0), 4 * T_PAGE, "before");
  CHECK_DATA(m, 4 * T_PAGE, 1, 0, "before");
  if (late) sigaction(SIGBUS, &a, NULL);
  if (ftruncate(file, T_PAGE)) abort();
  CHECK_ERR(phxfs_read(fd, 0, m, 2 * T_PAGE, 4096, 0), -EFAULT, EFAULT, "beyond the end");
  if (t_staged()) CHECK_ERR(phxfs_read(fd, 0, m, 0, 4 * T_PAGE, 0), t_before_hole(T_PAGE), EFAULT, "one piece");
  else CHECK_OK(phxfs_read(fd, 0, m, 0, 4 * T_PAGE, 0), T_PAGE, "progress wins");
  phxfs_io_req_t q[2] = {{fd, 0, m, 2 * T_PAGE, 4096, 0, 0}, {fd, 0, m, 0, 4096, 4096, 0}};
  CHECK_OK(phxfs_read_batch(q, 2), 1, "one beyond the end");
  CHECK(q[0].result == -EFAULT && q[1].result == 4096, "results %zd %zd", q[0].result, q[1].result);
  CHECK_OK(phxfs_batch_wait(phxfs_batch_submit_read(q, 2)), 1, "one beyond the end, async");
  CHECK_EQ(t_seen, 0, "a signal for the kernel's copies");
  for (int i = 0; i < 3; i++) {
    char *at = (char *)target + 2 * T_PAGE + 123;
    t_jump = 1, t_seen = 0;
    if (!sigsetjmp(t_back, 1)) *(volatile char *)at = 1;
    CHECK(t_seen == SIGBUS && t_addr == at && t_code == BUS_ADRERR, "signal %d at %p code %d, touched %p", t_seen, t_addr, t_code, (void *)at);
  }
  CHECK_OK(phxfs_deregmem(0, m, 4 * T_PAGE), 0, "afterwards");
  CHECK_OK(phxfs_close(0), 0, "afterwards");
}

static void handler_set_before_first_use(void) { RUN_CHILD("story", NULL); }
static void handler_set_after_first_use(void) { RUN_CHILD("story", "LATE=1"); }

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(handler_set_before_first_use), T_CASE(handler_set_after_first_use)};
  static const t_case children[] = {{"story", story}, {0}};
  return T_RUN(argc, argv, cases, children);
}
