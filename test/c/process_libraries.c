/* Other libraries in the process: a second copy of this one, another one with a
 * Go runtime, another malloc. */
#include "t_load.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static int fd; /* 64 KiB of pattern 1 */

static void calls(struct t_api *lib, const char *who) {
  char b[16 * 4096], *m = t_map(T_PAGE);
  void *target;
  phxfs_io_req_t q[16];
  for (int i = 0; i < 16; i++) q[i] = (phxfs_io_req_t){fd, -1, b, i * 4096, 4096, i * 4096, 0};
  CHECK_OK(lib->read_batch(q, 16), 0, "%s", who);
  CHECK_DATA(b, sizeof b, 1, 0, "%s", who);
  memset(b, 0, sizeof b);
  CHECK_OK(lib->wait(lib->submit_read(q, 16)), 0, "%s", who);
  CHECK_DATA(b, sizeof b, 1, 0, "%s", who);
  int r;
  T_EVENTUALLY((r = lib->open(0)) != -EBUSY); /* another thread's last close */
  CHECK_EQ(r, 0, "%s", who);
  CHECK_OK(lib->regmem(0, m, T_PAGE, &target), 0, "%s", who);
  t_target_made(0, m, T_PAGE, target);
  CHECK_OK(lib->read(fd, 0, m, 0, T_PAGE, 0), T_PAGE, "%s", who);
  CHECK_DATA(m, T_PAGE, 1, 0, "%s", who);
  t_target_gone(0, m, T_PAGE);
  CHECK_OK(lib->deregmem(0, m, T_PAGE), 0, "%s", who);
  CHECK_OK(lib->close(0), 0, "%s", who);
  t_unmap(m, T_PAGE);
}

static void in_child(void *lib) { calls(lib, "a forked child"); }

static bool copy_of_the_library(char *path, size_t size) {
  char dir[] = "t_copy_XXXXXX", full[PATH_MAX];
  struct stat st;
  if (!mkdtemp(dir) || !realpath(dir, full)) return false;
  snprintf(path, size, "%s/libphoenix.so", full);
  int from = open(t_lib(), O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
  bool ok = from >= 0 && to >= 0 && !fstat(from, &st);
  for (off_t left = ok ? st.st_size : 0; left > 0;) {
    ssize_t n = sendfile(to, from, NULL, (size_t)left);
    if (n <= 0) ok = false;
    if (n <= 0) break;
    left -= n;
  }
  close(from), close(to);
  return ok;
}

static void child_two_paths(void) {
  struct t_api a, b;
  char copy[PATH_MAX + 32], saved[PATH_MAX];
  t_use_host();
  fd = t_file(T_PAGE, 1);
  NEED(copy_of_the_library(copy, sizeof copy), "copy: %s", t_errno(errno));
  if (!t_load(&a)) return;
  snprintf(saved, sizeof saved, "%s", t_lib());
  setenv("PHX_LIB", copy, 1);
  bool loaded = t_load(&b);
  setenv("PHX_LIB", saved, 1);
  if (!loaded) return;
  /* glibc takes a library with a SONAME that is loaded already for the same only
   * when it is asked by that name; by path there are two. */
  CHECK(a.open != b.open, "one library: this tests nothing");
  for (int i = 0; i < 3; i++) calls(&a, "the first"), calls(&b, "the second");
  CHECK_EXIT(t_fork(in_child, &a), 0, "the first in a child");
  CHECK_EXIT(t_fork(in_child, &b), 0, "the second in a child");
  for (int i = 0; i < 3; i++) calls(&b, "the second"), calls(&a, "the first");
}

struct other {
  int (*work)(int), (*nil)(void);
  void (*signals)(void);
};
static bool load_other(struct other *o) {
  void *h = dlopen(OUT_PATH "/libother.so", RTLD_NOW);
  if (!h) t_skip(__FILE__, __LINE__, "othergo", "a second Go library: %s", dlerror());
  if (!h) return false;
  o->work = (__typeof__(o->work))t_symbol(h, "other_work");
  o->nil = (__typeof__(o->nil))t_symbol(h, "other_nil");
  o->signals = (__typeof__(o->signals))t_symbol(h, "other_signals");
  return true;
}

static struct t_api lib;
static struct other other;
static void *both(void *arg) {
  for (int i = 0; i < 30 && !t_failed(); i++) {
    calls(&lib, "with another Go");
    CHECK_EQ(other.work(20), 20, "the other Go");
    if (i % 10 == 0) CHECK_EQ(other.nil(), 1, "a nil dereference of the other Go");
  }
  return arg;
}
static sigjmp_buf back;
static void jump(int sig) { siglongjmp(back, sig); }

static void child_two_runtimes(void) {
  bool ours_first = getenv("FIRST") && !strcmp(getenv("FIRST"), "ours");
  pthread_t t[6];
  t_use_host();
  fd = t_file(T_PAGE, 1);
  if (ours_first && t_load(&lib)) calls(&lib, "alone");
  if (!load_other(&other)) return;
  CHECK_EQ(other.work(5), 5, "the other Go");
  if (!ours_first && !t_load(&lib)) return;
  calls(&lib, "after the other Go");
  other.signals();
  CHECK_EQ(other.nil(), 1, "a nil dereference of the other Go");
  for (int i = 0; i < 6; i++) pthread_create(&t[i], NULL, both, NULL);
  for (int i = 0; i < 6; i++) pthread_join(t[i], NULL);
  signal(SIGSEGV, jump);
  if (!sigsetjmp(back, 1)) *(volatile char *)16 = 1;
  calls(&lib, "after a fault that was recovered");
}

static void child_calls(void) {
  t_use_host();
  fd = t_file(T_PAGE, 1);
  if (!t_load(&lib)) return;
  if (!dlsym(RTLD_DEFAULT, "mallctl")) T_SKIP("jemalloc", "libjemalloc.so.2 (Debian, Ubuntu: libjemalloc2)");
  for (int i = 0; i < 20; i++) calls(&lib, "jemalloc");
  CHECK_EXIT(t_fork(in_child, &lib), 0, "a child");
}

static void loaded_from_two_paths(void) {
  NOT_ASAN();
  RUN_CHILD("two_paths", NULL);
}
static void another_go_library_first(void) { RUN_CHILD("two_runtimes", "FIRST=other"); }
static void another_go_library_later(void) { RUN_CHILD("two_runtimes", "FIRST=ours"); }
static void jemalloc(void) {
  NOT_ASAN();
  RUN_CHILD("calls", "LD_PRELOAD=libjemalloc.so.2");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(loaded_from_two_paths), T_CASE(another_go_library_first), T_CASE(another_go_library_later), T_CASE(jemalloc),
  };
  static const t_case children[] = {
    {"two_paths", child_two_paths}, {"two_runtimes", child_two_runtimes}, {"calls", child_calls}, {0}};
  return T_RUN(argc, argv, cases, children);
}
