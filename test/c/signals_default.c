/* Without a handler a signal ends the process as it does anywhere: by that very
 * signal, so that a core dump and the exit status tell the truth. */
#include "t_signals.h"

#include <sys/resource.h>

static int fd;

static void calls(void) {
  static char b[16 * 4096];
  phxfs_io_req_t q[16];
  for (int i = 0; i < 16; i++) q[i] = (phxfs_io_req_t){fd, -1, b, i * 4096, 4096, i * 4096, 0};
  if (phxfs_read_batch(q, 16) || phxfs_batch_wait(phxfs_batch_submit_read(q, 16))) _exit(8);
}

static int signo;
static void *cause(void *caller) {
  if (caller) calls();
  if (t_synchronous(signo)) t_cause(signo);
  else kill(getpid(), signo); /* to the process: whichever thread takes it */
  T_EVENTUALLY(false);
  return NULL;
}

static void story(void) {
  signal(SIGALRM, SIG_DFL), alarm(0);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  signo = atoi(getenv("SIG"));
  int on = atoi(getenv("ON"));
  pthread_t t;
  t_use_host(), t_signals_setup();
  fd = t_file(T_PAGE, 1);
  if (getenv("SENT")) {
    calls();
    kill(getpid(), signo);
    T_EVENTUALLY(false);
  }
  if (on != 2) calls();
  if (on == 0) cause(NULL);
  pthread_create(&t, NULL, cause, on == 1 ? "caller" : NULL);
  pthread_join(t, NULL);
}

static void dies(int sig, int on, const char *sent) {
  char s[32], o[32];
  snprintf(s, sizeof s, "SIG=%d", sig), snprintf(o, sizeof o, "ON=%d", on);
  int null = memfd_create("stderr", MFD_CLOEXEC);
  int status = t_wait(t_spawn("story", (const char *const[]){s, o, sent, NULL}, -1, null));
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == sig, "%s: status 0x%x, on %d %s", t_signame(sig), status, on, sent);
  CHECK_EQ(lseek(null, 0, SEEK_END), 0, "%s: bytes on stderr", t_signame(sig));
  close(null);
}

static void ends_the_process_by_that_signal(void) {
  NOT_ASAN();
  static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGPIPE, SIGALRM, SIGPROF, SIGTERM, SIGINT, SIGHUP, SIGUSR1, 34};
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
    for (int on = 0; on < 3; on++) dies(fatal[i], on, "A=0");
  for (int i = 0; i < 3; i++) dies(fatal[i], 0, "SENT=1");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(ends_the_process_by_that_signal)};
  static const t_case children[] = {{"story", story}, {0}};
  return T_RUN(argc, argv, cases, children);
}
