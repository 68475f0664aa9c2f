/* Where the reset cannot be trusted, calls that need the runtime say ENOSYS at
 * once, single transfers on CPU buffers work, and the parent does not notice.
 * This program's own mmap, madvise and __register_atfork stand before libc's. */
#include "fork_kit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static enum { NOTHING, NO_SNAPSHOT, NO_WIPE, NO_ATFORK } broken;

/* The snapshot is the first mapping of an odd, middling length in a start. */
void *mmap(void *addr, size_t n, int prot, int flags, int fd, off_t off) {
  if (broken == NO_SNAPSHOT && n > 16384 && n < (1 << 20) && n % 4096) {
    broken = NOTHING;
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return (void *)syscall(SYS_mmap, addr, n, prot, flags, fd, off);
}
int madvise(void *addr, size_t n, int advice) {
  if (broken == NO_WIPE && advice == MADV_WIPEONFORK) {
    errno = EINVAL;
    return -1;
  }
  return (int)syscall(SYS_madvise, addr, n, advice);
}
typedef void (*handler)(void);
int __register_atfork(handler prepare, handler parent, handler child, void *dso);
int __register_atfork(handler prepare, handler parent, handler child, void *dso) {
  if (broken == NO_ATFORK) return ENOMEM;
  int (*real)(handler, handler, handler, void *) = dlsym(RTLD_NEXT, "__register_atfork");
  return real(prepare, parent, child, dso);
}

static phxfs_batch_t *handle;
static void log_to(const char *name) {
  setenv("PHXFS_LOG", "error", 1);
  setenv("PHXFS_LOG_FILE", name, 1);
}
static bool says(const char *name, const char *reason) {
  static char text[1 << 16];
  int fd = open(name, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  text[n < 0 ? 0 : n] = 0;
  return strstr(text, reason);
}

static void child_refused(void *reason) {
  kit_is_refused("a child", handle);
  CHECK(says("log", reason), "the log does not say: %s", (char *)reason);
}
static void child_refused_and_exits_at_once(void *arg) { kit_is_refused(arg, handle); }
static void *thread_refused(void *who) {
  kit_cpu_buffers(who);
  CHECK_ERR(phxfs_open(1), -ENOSYS, ENOSYS, "%s", (char *)who);
  return NULL;
}
static void child_with_threads(void *arg) {
  pthread_t t[4];
  (void)arg;
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, thread_refused, "a thread of a child");
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  CHECK_EXIT(t_fork(child_refused_and_exits_at_once, "a grandchild"), 0, "a grandchild");
}

static void closed(const char *reason) {
  char got[16];
  phxfs_io_req_t q = {kit_fd, -1, got, 0, 16, 0, 0};
  log_to("log");
  kit_works("the parent");
  handle = phxfs_batch_submit_read(&q, 1);
  CHECK_EXIT(t_fork(child_refused, (void *)reason), 0, reason);
  CHECK_EXIT(t_fork(child_with_threads, NULL), 0, reason);
  CHECK_OK(phxfs_batch_wait(handle), 0, "the parent's handle, in the parent");
  kit_works("the parent, afterwards");
}

static void child_without_snapshot(void) {
  char b[16];
  CHECK_OK(phxfs_read(kit_fd, -1, b, 0, 16, 0), 16, "plain memory, which makes the library's state");
#ifdef __SANITIZE_ADDRESS__ /* takes none in the first place */
  closed("a sanitizer");
#else
  broken = NO_SNAPSHOT;
  closed("no memory for the snapshot");
#endif
}
static void child_without_atfork(void) {
  broken = NO_ATFORK;
  closed("pthread_atfork failed");
}
static void child_without_wipe(void) { /* as on a kernel before 4.14: not even the parent has Go */
  broken = NO_WIPE;
  log_to("log");
  kit_is_refused("a process without MADV_WIPEONFORK", NULL);
  CHECK(says("log", "older than 4.14"), "the log says why");
  CHECK_EXIT(t_fork(child_refused_and_exits_at_once, "its child"), 0, "its child");
}

static void no_memory_for_the_snapshot(void) { RUN_CHILD("without_snapshot", NULL); }
static void no_atfork_handler(void) { RUN_CHILD("without_atfork", NULL); }
static void no_page_that_fork_empties(void) { RUN_CHILD("without_wipe", NULL); }

/* _Fork and a raw clone run no atfork handler. Their own children by fork do. */
static void grandchild(void *arg) {
  (void)arg;
#ifdef __SANITIZE_ADDRESS__
  kit_is_refused("a child by fork of a child without atfork", handle);
#else
  kit_works("a child by fork of a child without atfork");
#endif
}
static void without_handlers(const char *who, int clean) {
  alarm(T_CASE_SECONDS - 15);
  kit_is_refused(who, handle);
  if (clean) exit(0); /* flushes and releases nothing of the parent's */
  CHECK_EXIT(t_fork(grandchild, NULL), 0, who);
  _exit(0);
}
static void raw_clone_and__Fork_are_refused_at_once(void) {
  char got[16];
  phxfs_io_req_t q = {kit_fd, -1, got, 0, 16, 0, 0};
  kit_works("the parent");
  handle = phxfs_batch_submit_read(&q, 1);
  for (int clean = 0; clean < 2; clean++) {
    pid_t pid = _Fork();
    if (pid == 0) without_handlers("a child of _Fork", clean);
    CHECK_EXIT(pid, 0, "_Fork");
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) without_handlers("a child of clone", clean);
    CHECK_EXIT(pid, 0, "clone");
  }
  CHECK_OK(phxfs_batch_wait(handle), 0, "the parent's handle, in the parent");
  kit_works("the parent, afterwards");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(no_memory_for_the_snapshot), T_CASE(no_atfork_handler), T_CASE(no_page_that_fork_empties),
                                 T_CASE(raw_clone_and__Fork_are_refused_at_once)};
  static const t_case children[] = {
    {"without_snapshot", child_without_snapshot}, {"without_atfork", child_without_atfork}, {"without_wipe", child_without_wipe}, {0}};
  kit_make();
  return T_RUN(argc, argv, cases, children);
}
