/* Each PHXFS_ variable, set with setenv after the library is loaded and before
 * the first call, takes effect. Every story is a process of its own. */
#include "t_load.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct t_api lib;

static char *scratch_dir(void) {
  static char path[PATH_MAX];
  char name[] = "t_dir_XXXXXX";
  if (!mkdtemp(name) || !realpath(name, path)) t_fail(__FILE__, __LINE__, "mkdtemp: %s", t_errno(errno));
  return path;
}

static void put(const char *dir, const char *name, const char *text) {
  char path[PATH_MAX + 256];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
    *p = 0;
    mkdir(path, 0700);
    *p = '/';
  }
  FILE *f = fopen(path, "w");
  if (!f || fputs(text, f) < 0 || fclose(f)) t_fail(__FILE__, __LINE__, "%s: %s", path, t_errno(errno));
}

static void child_vendor(void) {
  if (!t_load(&lib)) return;
  setenv("PHXFS_VENDOR", "HOST", 1);
  CHECK_OK(lib.open(0), 0, "PHXFS_VENDOR=HOST has device 0");
  CHECK_OK(lib.find_dev(5), 5, "PHXFS_VENDOR=HOST");
  CHECK_OK(lib.close(0), 0, "PHXFS_VENDOR=HOST");
  setenv("PHXFS_VENDOR", "NVIDIA", 1); /* too late: read once */
  CHECK_OK(lib.open(7), 0, "the vendor stays");
}

static void child_log(void) {
  char path[PATH_MAX + 16], text[4096] = "";
  snprintf(path, sizeof path, "%s/log", scratch_dir());
  if (!t_load(&lib)) return;
  setenv("PHXFS_VENDOR", "HOST", 1);
  setenv("PHXFS_LOG", "error", 1);
  setenv("PHXFS_LOG_FILE", path, 1);
  CHECK_ERR(lib.open(99), -1, EINVAL, "99");
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  NEED(fd >= 0, "%s: %s", path, t_errno(errno));
  CHECK(read(fd, text, sizeof text - 1) > 0, "PHXFS_LOG_FILE is empty");
  CHECK(strstr(text, "call=phxfs_open") && strstr(text, "EINVAL"), "log: %s", text);
}

static void child_log_is_off(void) { /* PHXFS_LOG_FILE alone asks for nothing */
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/log", scratch_dir());
  if (!t_load(&lib)) return;
  setenv("PHXFS_LOG_FILE", path, 1);
  CHECK_ERR(lib.open(99), -1, EINVAL, "99");
  struct stat st;
  CHECK(stat(path, &st) || st.st_size == 0, "a log of %lld bytes without PHXFS_LOG", (long long)st.st_size);
}

static void child_engine(void) {
  if (!t_load(&lib)) return;
  setenv("PHXFS_VENDOR", "HOST", 1);
  setenv("PHXFS_IO_ENGINE", "Sync", 1);
  const char *name = lib.engine_name();
  CHECK(name && !strcmp(name, "sync"), "PHXFS_IO_ENGINE=Sync gives %s", name ? name : "NULL");
  setenv("PHXFS_IO_ENGINE", "io_uring", 1); /* too late */
  CHECK(lib.engine_name() == name || !strcmp(lib.engine_name(), "sync"), "the engine stays");
}

/* Helper threads come up one after the other; besides them the runtime has a few. */
static void threads_with(const char *workers, int least, int most) {
  static char m[32][65536];
  phxfs_io_req_t q[32];
  int fd = t_file(sizeof m, 1);
  if (!t_load(&lib)) return;
  t_use_host();
  setenv("PHXFS_WORKERS", workers, 1);
  for (int i = 0; i < 32; i++) q[i] = (phxfs_io_req_t){fd, -1, m[i], 0, sizeof m[i], i * 65536, 0};
  for (int i = 0; i < 100; i++) CHECK_OK(lib.wait(lib.submit_read(q, 32)), 0, "PHXFS_WORKERS=%s", workers);
  T_EVENTUALLY(t_tasks() >= least);
  CHECK(t_tasks() >= least && t_tasks() <= most, "threads with PHXFS_WORKERS=%s: %d want %d to %d", workers, t_tasks(), least, most);
}
static void child_workers(void) {
  const char *w = getenv("WORKERS");
  int n = atoi(w);
  if (n >= 1 && n <= 64) threads_with(w, n + 1, n + 48);
  else threads_with(w, 2, 4 + 48); /* ignored: the default is at most 4 */
}

static void child_dev_dir_empty(void) {
  if (!t_load(&lib)) return;
  setenv("PHXFS_VENDOR", "NVIDIA", 1);
  setenv("PHXFS_DEV_DIR", scratch_dir(), 1);
  CHECK_ERR(lib.open(0), -1, ENOENT, "empty PHXFS_DEV_DIR");
  CHECK_ERR(lib.close(0), -1, ENODEV, "it is not open");
}

/* A plain file stands for the node: open works, mmap works, MAP does not. */
static void child_dev_dir_file(void) {
  char *m = t_map(2 * T_PAGE), *dir = scratch_dir();
  t_leaks before;
  put(dir, "phxfs_dev3", "");
  if (!t_load(&lib)) return;
  setenv("PHXFS_VENDOR", "NVIDIA", 1);
  setenv("PHXFS_DEV_DIR", dir, 1);
  CHECK_ERR(lib.open(0), -1, ENOENT, "no such node");
  for (int round = 0; round < 2; round++) {
    void *target = (void *)0x5a;
    if (round == 1) t_leaks_take(&before);
    for (int i = 0; i < 1 + 20 * round; i++) {
      CHECK_OK(lib.open(3), 0, "the node is a file");
      CHECK_ERR(lib.regmem(3, m, 2 * T_PAGE, &target), -EFAULT, ENOTTY, "MAP on a file");
      CHECK_EQ((intptr_t)target, 0x5a, "*target_addr");
      CHECK_ERR(lib.regmem(3, m, 2 * T_PAGE, &target), -EFAULT, ENOTTY, "the range is free: no EINVAL for an overlap");
      CHECK_ERR(lib.deregmem(3, m, 2 * T_PAGE), -1, ENOENT, "nothing is registered");
      CHECK_ERR(lib.read(0, 3, m, 0, 16, 0), -1, EFAULT, "nothing is registered");
      CHECK_OK(lib.close(3), 0, "the node is a file");
    }
  }
  CHECK_NO_GROWTH(&before, 6144, "21 failed registrations and 21 opens");
}

/* Nodes that cannot be opened or mapped: -1 or -EFAULT with the kernel's errno. */
static void child_dev_dir_others(void) {
  char *m = t_map(T_PAGE), *dir = scratch_dir(), path[PATH_MAX + 32];
  t_leaks before;
  void *target = (void *)0x5a;
  put(dir, "phxfs_dev0", ""), put(dir, "phxfs_dev1/inside", "");
  snprintf(path, sizeof path, "%s/phxfs_dev2", dir);
  NEED(!symlink("/dev/null", path), "%s", t_errno(errno));
  if (!t_load(&lib)) return;
  setenv("PHXFS_VENDOR", "NVIDIA", 1);
  setenv("PHXFS_DEV_DIR", dir, 1);
  CHECK_ERR(lib.open(1), -1, EISDIR, "the node is a folder");
  t_leaks_take(&before);
  CHECK_ERR(lib.open(1), -1, EISDIR, "the node is a folder");
  CHECK_OK(lib.open(2), 0, "the node is /dev/null");
  CHECK_ERR(lib.regmem(2, m, T_PAGE, &target), -EFAULT, ENODEV, "mmap of /dev/null");
  CHECK_EQ((intptr_t)target, 0x5a, "*target_addr");
  CHECK_OK(lib.close(2), 0, "the node is /dev/null");
  struct rlimit old, none;
  getrlimit(RLIMIT_NOFILE, &old);
  none = (struct rlimit){3, old.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  int r = lib.open(0), e = errno;
  setrlimit(RLIMIT_NOFILE, &old);
  CHECK_EQ(r, -1, "no descriptor left");
  CHECK_EQ(e, EMFILE, "no descriptor left");
  CHECK_OK(lib.open(0), 0, "with descriptors");
  CHECK_OK(lib.close(0), 0, "with descriptors");
  CHECK_NO_LEAKS(&before, 4, 8, "nodes that fail");
}

/* A stand-in for libcuda tells the PCI address, the tree of PHXFS_SYSFS_ROOT the index. */
static void child_sysfs(void) {
  char *root = scratch_dir();
  put(root, "class/phxfs-generic/phxfs_dev1/pci_bdf", "0000:3B:00.0\n");
  put(root, "class/phxfs-generic/phxfs_dev6/pci_bdf", "0000:1a:00.0\n");
  put(root, "class/phxfs-generic/phxfs_dev7/pci_bdf", "0000:ff:00.0\n");
  if (!dlopen(OUT_PATH "/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) {
    t_fail(__FILE__, __LINE__, "%s", dlerror());
    return;
  }
  if (!t_load(&lib)) return;
  setenv("PHXFS_VENDOR", "NVIDIA", 1);
  setenv("PHXFS_SYSFS_ROOT", root, 1);
  CHECK_OK(lib.find_dev(0), 6, "0000:1A:00.0 (compared without case)");
  CHECK_OK(lib.find_dev(1), 1, "0000:3b:00.0");
  CHECK_ERR(lib.find_dev(2), -1, ENODEV, "no such ordinal");
}

/* Only successes are remembered: the module may be loaded later. */
static void child_sysfs_later(void) {
  char *root = scratch_dir();
  if (!dlopen(OUT_PATH "/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) || !t_load(&lib)) return;
  setenv("PHXFS_VENDOR", "NVIDIA", 1);
  setenv("PHXFS_SYSFS_ROOT", root, 1);
  CHECK_ERR(lib.find_dev(0), -1, ENODEV, "no phxfs device yet");
  put(root, "class/phxfs-generic/phxfs_dev4/pci_bdf", "0000:1a:00.0\n");
  CHECK_OK(lib.find_dev(0), 4, "now there is one");
}

static void vendor(void) { RUN_CHILD("vendor", "PHXFS_VENDOR"); }
static void log_and_log_file(void) { RUN_CHILD("log", "PHXFS_LOG", "PHXFS_LOG_FILE"); }
static void log_file_alone_is_silent(void) { RUN_CHILD("log_is_off", "PHXFS_LOG", "PHXFS_LOG_FILE"); }
static void io_engine(void) { RUN_CHILD("engine", "PHXFS_IO_ENGINE"); }
static void dev_dir_empty(void) { RUN_CHILD("dev_dir_empty", "PHXFS_DEV_DIR"); }
static void dev_dir_with_a_plain_file(void) { RUN_CHILD("dev_dir_file", "PHXFS_DEV_DIR"); }
static void dev_dir_with_other_nodes(void) { RUN_CHILD("dev_dir_others", "PHXFS_DEV_DIR"); }
static void sysfs_root(void) { RUN_CHILD("sysfs", "PHXFS_SYSFS_ROOT"); }
static void sysfs_root_filled_later(void) { RUN_CHILD("sysfs_later", "PHXFS_SYSFS_ROOT"); }
static void workers(void) {
  RUN_CHILD("workers", "PHXFS_WORKERS", "WORKERS=1");
  RUN_CHILD("workers", "PHXFS_WORKERS", "WORKERS=33");
  RUN_CHILD("workers", "PHXFS_WORKERS", "WORKERS=64");
}
static void workers_out_of_range_are_ignored(void) {
  RUN_CHILD("workers", "PHXFS_WORKERS", "WORKERS=0");
  RUN_CHILD("workers", "PHXFS_WORKERS", "WORKERS=65");
  RUN_CHILD("workers", "PHXFS_WORKERS", "WORKERS=-3");
  RUN_CHILD("workers", "PHXFS_WORKERS", "WORKERS=none");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(vendor), T_CASE(log_and_log_file), T_CASE(log_file_alone_is_silent), T_CASE(io_engine), T_CASE(workers),
    T_CASE(workers_out_of_range_are_ignored),
    T_CASE(dev_dir_empty), T_CASE(dev_dir_with_a_plain_file),
    T_CASE(dev_dir_with_other_nodes), T_CASE(sysfs_root), T_CASE(sysfs_root_filled_later),
  };
  static const t_case children[] = {
    {"vendor", child_vendor}, {"log", child_log}, {"log_is_off", child_log_is_off}, {"engine", child_engine},
    {"workers", child_workers}, {"dev_dir_empty", child_dev_dir_empty},
    {"dev_dir_file", child_dev_dir_file}, {"dev_dir_others", child_dev_dir_others}, {"sysfs", child_sysfs}, {"sysfs_later", child_sysfs_later}, {0}};
  return T_RUN(argc, argv, cases, children);
}
