/* t_inject.h - the test build of the library (make inject), by dlopen. */
#ifndef T_INJECT_H
#define T_INJECT_H

#include "t_load.h"

#include "../../cabi/inject.h"

/* "PHX_LIB=" and where the test build lies from this program: the two may have been
 * carried elsewhere together. For RUN_CHILD: such a child loads it. */
static inline const char *t_inject_env(void) {
  static char text[PATH_MAX + 64];
  ssize_t n = readlink("/proc/self/exe", text + 8, PATH_MAX);
  if (n < 0) n = 0;
  memcpy(text, "PHX_LIB=", 8), text[8 + n] = 0;
  char *slash = strrchr(text, '/');
  snprintf(slash ? slash : text + 8, 64, "/../inject/libphoenix.so");
  return text;
}
#define T_INJECT_ENV t_inject_env()
#define T_INJECT_LIB (t_inject_env() + 8)

#define NEED_INJECT()                                                                  \
  do {                                                                                 \
    if (access(T_INJECT_LIB, R_OK)) T_SKIP("inject", "%s (make inject)", T_INJECT_LIB); \
  } while (0)

struct t_injector {
  void (*arm)(int place, int times);
  int (*left)(int place);
  void (*memory)(uint64_t *cycles, uint64_t *heap, uint64_t *all);
  void (*counts)(uint64_t *entries, uint64_t *objects);
};

static inline bool t_load_inject(struct t_api *a, struct t_injector *i) {
  if (!t_load(a)) return false;
  i->arm = (__typeof__(i->arm))t_symbol(a->handle, "phxfs_inject");
  i->left = (__typeof__(i->left))t_symbol(a->handle, "phxfs_inject_left");
  i->memory = (__typeof__(i->memory))t_symbol(a->handle, "phxfs_inject_memory");
  i->counts = (__typeof__(i->counts))t_symbol(a->handle, "phxfs_inject_counts");
  return !t_failed();
}

#endif
