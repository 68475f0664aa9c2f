/* A parent whose other threads are in dlopen and dlclose all the time forks. The
 * child registers device memory, for which its vendor's library is looked for:
 * that must not touch the loader's half-written lists, nor wait for its locks. */
#include "fork_kit.h"

#include <dlfcn.h>

enum { LOADERS = 2, FORKS = 150 };
static atomic_bool over;

static void *loads(void *arg) {
  while (!over) {
    void *a = dlopen(OUT_PATH "/image_deletable.so", RTLD_NOW | RTLD_LOCAL);
    void *b = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
    if (a) dlclose(a);
    if (b) dlclose(b);
  }
  return arg;
}

/* The node is a plain file: MAP answers ENOTTY, and the question comes before. */
static void registers(void *m) {
  void *target;
  CHECK_ERR(phxfs_regmem(3, m, T_PAGE, &target), -EFAULT, ENOTTY, "a child");
  _exit(t_failed()); /* exit() itself can hang in glibc */
}

static void child_forks(void) {
  char dir[] = "t_dev_XXXXXX", path[64];
  pthread_t t[LOADERS];
  if (!mkdtemp(dir)) abort();
  snprintf(path, sizeof path, "%s/phxfs_dev3", dir);
  FILE *node = fopen(path, "w");
  if (!node || fclose(node)) abort();
  setenv("PHXFS_VENDOR", "NVIDIA", 1), setenv("PHXFS_DEV_DIR", dir, 1);
  CHECK_OK(phxfs_open(3), 0, "the parent");
  for (int i = 0; i < LOADERS; i++) pthread_create(&t[i], NULL, loads, NULL);
  char *m = t_map(T_PAGE);
  for (int i = 0; i < FORKS && !t_failed(); i++) CHECK_EXIT(t_fork(registers, m), 0, "forked during dlopen");
  over = true;
  for (int i = 0; i < LOADERS; i++) pthread_join(t[i], NULL);
  CHECK_OK(phxfs_close(3), 0, "the parent");
}
static void registers_in_a_child_of_a_loading_parent(void) {
  NEED_RESET();
  RUN_CHILD("forks", "PHXFS_LOG");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(registers_in_a_child_of_a_loading_parent)};
  static const t_case children[] = {{"forks", child_forks}, {0}};
  return T_RUN(argc, argv, cases, children);
}
