/* t_inject.h - the test build of the library (make inject), by dlopen. */
#ifndef T_INJECT_H
#define T_INJECT_H

#include "t_load.h"

#include "../../cabi/inject.h"

#define T_INJECT_LIB OUT_PATH "/../inject/libphoenix.so"

/* For RUN_CHILD: this child loads the test build. */
#define T_INJECT_ENV "PHX_LIB=" T_INJECT_LIB

#define NEED_INJECT()                                                                  \
  do {                                                                                 \
    if (access(T_INJECT_LIB, R_OK)) T_SKIP("inject", "%s (make inject)", T_INJECT_LIB); \
  } while (0)

struct t_injector {
  void (*arm)(int place, int times);
  int (*left)(int place);
  void (*memory)(uint64_t *cycles, uint64_t *heap, uint64_t *all);
};

static inline bool t_load_inject(struct t_api *a, struct t_injector *i) {
  if (!t_load(a)) return false;
  i->arm = (__typeof__(i->arm))t_symbol(a->handle, "phxfs_inject");
  i->left = (__typeof__(i->left))t_symbol(a->handle, "phxfs_inject_left");
  i->memory = (__typeof__(i->memory))t_symbol(a->handle, "phxfs_inject_memory");
  return !t_failed();
}

#endif
