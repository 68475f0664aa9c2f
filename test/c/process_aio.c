/* Linux AIO denied to the sync engine, by a seccomp filter of the process's own:
 * each of its system calls, from the start or later, with each error. Batches on
 * an O_DIRECT file are right, and one line of the log says why they are slower; none
 * where io_getevents is interrupted for ever, and the answers are seen without it. */
#include "t.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const struct { const char *name; int number; } calls[] = {
  {"io_setup", SYS_io_setup}, {"io_submit", SYS_io_submit}, {"io_getevents", SYS_io_getevents}};
static const int answers[] = {EPERM, ENOSYS, EAGAIN, EINTR};
enum { CALLS = 3, ANSWERS = 4, BLOCK = 4096, BLOCKS = 16 };

static int direct; /* BLOCKS * BLOCK bytes of pattern 1 */

static bool deny(int call, int err) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog p = {sizeof code / sizeof *code, code};
  if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p)) return true;
  t_skip(__FILE__, __LINE__, "seccomp", "seccomp filters: %s", t_errno(errno));
  return false;
}

/* Every second block, so that they stay as many transfers. */
static void batches(const char *when) {
  char *m = t_map(BLOCKS * BLOCK);
  phxfs_io_req_t q[BLOCKS / 2];
  for (int round = 0; round < 6; round++) {
    memset(m, 0, BLOCKS * BLOCK);
    for (int i = 0; i < BLOCKS / 2; i++) q[i] = (phxfs_io_req_t){direct, -1, m + 2 * i * BLOCK, 0, BLOCK, 2 * i * BLOCK, 111};
    if (round % 2)
      CHECK_OK(phxfs_batch_wait(phxfs_batch_submit_read(q, BLOCKS / 2)), 0, "%s, round %d", when, round);
    else
      CHECK_OK(phxfs_read_batch(q, BLOCKS / 2), 0, "%s, round %d", when, round);
    for (int i = 0; i < BLOCKS / 2; i++) CHECK_DATA(m + 2 * i * BLOCK, BLOCK, 1, 2 * i * BLOCK, "%s, round %d, block %d", when, round, i);
  }
  t_unmap(m, BLOCKS * BLOCK);
}

static int lines_with(const char *word) {
  char b[1024];
  int n = 0;
  FILE *f = fopen("log", "re");
  while (f && fgets(b, sizeof b, f)) n += strcasestr(b, word) != NULL;
  if (f) fclose(f);
  return n;
}

static void child(void) {
  const char *when = getenv("WHEN");
  int call = atoi(getenv("CALL")), err = atoi(getenv("ANSWER"));
  bool later = getenv("LATER")[0] == '1';
  char path[64];
  t_use_host();
  unlink("log");
  snprintf(path, sizeof path, "/proc/self/fd/%d", t_file(BLOCKS * BLOCK, 1));
  direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (direct < 0) {
    t_skip(__FILE__, __LINE__, "odirect", "O_DIRECT in the folder of temporary files: %s", t_errno(errno));
    return;
  }
  if (later) batches("before");
  if (lines_with("Linux AIO")) {
    t_skip(__FILE__, __LINE__, "aio", "Linux AIO");
    return;
  }
  if (!deny(call, err)) return;
  batches(when);
  bool seen = call == SYS_io_getevents && err == EINTR;
  if (!later || call != SYS_io_setup) CHECK_EQ(lines_with("Linux AIO"), !seen, "lines about AIO, %s", when);
  CHECK(lines_with("Linux AIO") <= 1, "lines about AIO, %s", when);
}

static void each(const char *later) {
  char when[64], call[16], answer[16];
  setenv("LATER", later, 1);
  for (int c = 0; c < CALLS; c++)
    for (int a = 0; a < ANSWERS && !t_failed() && !t_skipped(); a++) {
      snprintf(when, sizeof when, "%s is %s%s", calls[c].name, strerrorname_np(answers[a]), later[0] == '1' ? ", later" : "");
      snprintf(call, sizeof call, "%d", calls[c].number), snprintf(answer, sizeof answer, "%d", answers[a]);
      setenv("WHEN", when, 1), setenv("CALL", call, 1), setenv("ANSWER", answer, 1);
      RUN_CHILD("child", NULL);
    }
}
static void denied_from_the_start(void) { each("0"); }
static void denied_later(void) { each("1"); }

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(denied_from_the_start), T_CASE(denied_later)};
  static const t_case children[] = {{"child", child}, {0}};
  setenv("PHXFS_IO_ENGINE", "sync", 1);
  setenv("PHXFS_LOG", "warn", 1);
  setenv("PHXFS_LOG_FILE", "log", 1);
  return T_RUN(argc, argv, cases, children);
}
