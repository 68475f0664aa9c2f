/* io_uring denied, by a seccomp filter of the process's own: each of its three
 * system calls, with each error that containers and kernels answer. The engine
 * tells its true name, the log says why in one line, results are right. So they are
 * with what a kernel says for a moment only, said for ever: EAGAIN, EBUSY, EINTR. */
#include "t.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { SETUP = 425, ENTER = 426, REGISTER = 427 }; /* on every architecture */
static const struct { const char *name; int number; } calls[] = {{"setup", SETUP}, {"enter", ENTER}, {"register", REGISTER}};
static const int answers[] = {EPERM, ENOSYS, EACCES, EINVAL, ENOMEM};
static const int passing[] = {EAGAIN, EBUSY, EINTR};
enum { CALLS = 3, ANSWERS = 5, PASSING = 3, BLOCKS = 64 };

/* From here on the calling thread, or (all) every thread, gets err from call. */
static bool deny(int call, int err, bool all) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog p = {sizeof code / sizeof *code, code};
  if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
      !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all ? SECCOMP_FILTER_FLAG_TSYNC : 0, &p))
    return true;
  t_skip(__FILE__, __LINE__, "seccomp", "seccomp filters: %s", t_errno(errno));
  return false;
}

static int fd; /* BLOCKS * 64 KiB of pattern 1 */

/* Small batches and one that is worth helpers. */
static void batches(const char *when) {
  char *m = t_map(BLOCKS * T_PAGE);
  for (int round = 0; round < 8 && !t_failed(); round++) {
    size_t piece = round % 2 ? T_PAGE : 4096;
    int n = round < 2 ? 1 : BLOCKS;
    phxfs_io_req_t q[BLOCKS];
    for (int i = 0; i < n; i++) {
      off_t at = (off_t)((size_t)i * piece);
      q[i] = (phxfs_io_req_t){fd, -1, m, at, piece, at, 111};
    }
    memset(m, 0, (size_t)n * piece);
    CHECK_OK(phxfs_read_batch(q, n), 0, "%s, round %d", when, round);
    CHECK_DATA(m, (size_t)n * piece, 1, 0, "%s, round %d", when, round);
    memset(m, 0, (size_t)n * piece);
    CHECK_OK(phxfs_batch_wait(phxfs_batch_submit_read(q, n)), 0, "%s, round %d, async", when, round);
    CHECK_DATA(m, (size_t)n * piece, 1, 0, "%s, round %d, async", when, round);
  }
  t_unmap(m, BLOCKS * T_PAGE);
}

/* The lines of the log in which word occurs; the last one goes to line. */
static int lines_with(const char *word, char *line, size_t size) {
  char b[1024];
  int n = 0;
  FILE *f = fopen("log", "re");
  while (f && fgets(b, sizeof b, f))
    if (strcasestr(b, word)) n++, snprintf(line, size, "%s", b);
  if (f) fclose(f);
  return n;
}

static bool told(void) {
  char line[1024];
  return lines_with("io_uring", line, sizeof line) > 0;
}

/* Exactly one line says that io_uring is not used, and the kernel's reason. A
 * helper's may come a little later. */
static void told_once(int err, const char *when) {
  char line[1024] = "";
  T_EVENTUALLY(told());
  CHECK_EQ(lines_with("io_uring", line, sizeof line), 1, "lines about io_uring, %s", when);
  CHECK(strcasestr(line, strerror(err)) || strstr(line, strerrorname_np(err)), "%s: the line does not say %s: %s", when, strerror(err), line);
}

static void check_name(const char *want, const char *when) {
  const char *name = phxfs_io_engine_name();
  CHECK(name && !strcmp(name, want), "%s: the engine calls itself %s, want %s", when, name ? name : "NULL", want);
}

static void begin(void) {
  t_use_host();
  unlink("log");
  fd = t_file(BLOCKS * T_PAGE, 1);
}

static bool has_uring(void) {
  if (!strcmp(phxfs_io_engine_name(), "io_uring")) return true;
  t_skip(__FILE__, __LINE__, "io_uring", "io_uring");
  return false;
}

static void child_from_the_start(void) {
  int call = atoi(getenv("CALL")), err = atoi(getenv("ANSWER"));
  begin();
  if (!deny(call, err, true)) return;
  batches(getenv("WHEN"));
  if (call == REGISTER) { /* rings do without it */
    check_name("io_uring", getenv("WHEN"));
    return;
  }
  check_name("sync", getenv("WHEN"));
  told_once(err, getenv("WHEN"));
}

/* One thread alone is denied, when the engine has been chosen: it goes on
 * without a ring, the others with theirs. */
static void *denied_thread(void *arg) {
  (void)arg;
  if (!deny(ENTER, atoi(getenv("ANSWER")), false)) return NULL;
  do batches("a thread that is denied"); /* until helpers have left it a part of one */
  while (!told() && !t_failed());
  return NULL;
}
static void child_one_thread(void) {
  pthread_t t;
  begin();
  if (!has_uring()) return;
  batches("before");
  pthread_create(&t, NULL, denied_thread, NULL);
  pthread_join(t, NULL);
  if (t_skipped()) return;
  check_name("io_uring", "after a thread was denied");
  told_once(atoi(getenv("ANSWER")), "a thread that is denied");
  batches("the others");
}

/* All are denied the rings that they have. */
static void child_all_threads(void) {
  begin();
  if (!has_uring()) return;
  batches("before");
  if (!deny(ENTER, atoi(getenv("ANSWER")), true)) return;
  batches("after");
  check_name("io_uring", "after all threads were denied");
  told_once(atoi(getenv("ANSWER")), "all threads are denied");
}

/* All are denied new rings, before the helpers have theirs. */
static void child_later(void) {
  begin();
  if (!has_uring() || !deny(SETUP, atoi(getenv("ANSWER")), true)) return;
  batches("no new rings");
  check_name("io_uring", "no new rings");
  told_once(atoi(getenv("ANSWER")), "no new rings");
}

/* Whether there is an io_uring to be denied. */
static void child_free(void) {
  t_use_host();
  has_uring();
}

static bool run(const char *child, int call, int err, const char *when) {
  char c[32], a[32], w[128];
  snprintf(c, sizeof c, "CALL=%d", call), snprintf(a, sizeof a, "ANSWER=%d", err), snprintf(w, sizeof w, "WHEN=%s", when);
  RUN_CHILD(child, c, a, w, "PHXFS_IO_ENGINE", "PHXFS_LOG=warn", "PHXFS_LOG_FILE=log");
  return !t_failed() && !t_skipped();
}

static void each_call_denied_from_the_start(void) {
  if (!run("free", 0, 0, "no filter")) return;
  for (int c = 0; c < CALLS; c++)
    for (int a = 0; a < ANSWERS; a++) {
      char when[64];
      snprintf(when, sizeof when, "io_uring_%s gives %s", calls[c].name, strerrorname_np(answers[a]));
      if (!run("from_the_start", calls[c].number, answers[a], when)) return;
    }
  if (!run("from_the_start", SETUP, EINTR, "io_uring_setup gives EINTR")) return;
  if (!run("from_the_start", REGISTER, EINTR, "io_uring_register gives EINTR")) return;
}
static void enter_refused_for_ever_from_the_start(void) {
  if (!run("free", 0, 0, "no filter")) return;
  for (int a = 0; a < PASSING; a++)
    if (!run("from_the_start", ENTER, passing[a], "io_uring_enter is refused for a moment, for ever")) return;
}
static void one_thread_goes_on_without_a_ring(void) {
  for (int a = 0; a < ANSWERS; a++)
    if (!run("one_thread", ENTER, answers[a], "")) return;
}
static void all_threads_go_on_without_rings(void) {
  if (!run("all_threads", ENTER, EPERM, "")) return;
  for (int a = 0; a < PASSING; a++)
    if (!run("all_threads", ENTER, passing[a], "")) return;
}
static void helpers_go_without_rings(void) {
  for (int a = 0; a < ANSWERS; a++)
    if (!run("later", SETUP, answers[a], "")) return;
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(each_call_denied_from_the_start), T_CASE(enter_refused_for_ever_from_the_start),
    T_CASE(one_thread_goes_on_without_a_ring), T_CASE(all_threads_go_on_without_rings), T_CASE(helpers_go_without_rings),
  };
  static const t_case children[] = {
    {"free", child_free}, {"from_the_start", child_from_the_start}, {"one_thread", child_one_thread}, {"all_threads", child_all_threads}, {"later", child_later}, {0}};
  return T_RUN(argc, argv, cases, children);
}
