/* t_load.h - the library by dlopen, for programs that watch the load itself. */
#ifndef T_LOAD_H
#define T_LOAD_H

#include "t.h"

#include <dlfcn.h>

struct t_api {
  void *handle;
  __typeof__(&phxfs_open) open;
  __typeof__(&phxfs_close) close;
  __typeof__(&phxfs_get_page_size) get_page_size;
  __typeof__(&phxfs_find_dev) find_dev;
  __typeof__(&phxfs_regmem) regmem;
  __typeof__(&phxfs_deregmem) deregmem;
  __typeof__(&phxfs_read) read;
  __typeof__(&phxfs_write) write;
  __typeof__(&phxfs_read_batch) read_batch;
  __typeof__(&phxfs_write_batch) write_batch;
  __typeof__(&phxfs_batch_submit_read) submit_read;
  __typeof__(&phxfs_batch_submit_write) submit_write;
  __typeof__(&phxfs_batch_wait) wait;
  __typeof__(&phxfs_batch_destroy) destroy;
  __typeof__(&phxfs_io_engine_name) engine_name;
  __typeof__(&phxfs_get_map_mode) get_map_mode;
};

static inline const char *t_lib(void) {
  const char *p = getenv("PHX_LIB");
  return p && *p ? p : LIB_PATH;
}

static inline void *t_symbol(void *handle, const char *name) {
  void *p = dlsym(handle, name);
  if (!p) t_fail(__FILE__, __LINE__, "dlsym: %s", dlerror());
  return p;
}

/* RTLD_NOW: every symbol must be there. false, and the case fails, if not. */
static inline bool t_load(struct t_api *a) {
  memset(a, 0, sizeof *a);
  a->handle = dlopen(t_lib(), RTLD_NOW | RTLD_LOCAL);
  if (!a->handle) {
    t_fail(__FILE__, __LINE__, "dlopen: %s", dlerror());
    return false;
  }
#define T_GET(member, name) a->member = (__typeof__(a->member))t_symbol(a->handle, name)
  T_GET(open, "phxfs_open");
  T_GET(close, "phxfs_close");
  T_GET(get_page_size, "phxfs_get_page_size");
  T_GET(find_dev, "phxfs_find_dev");
  T_GET(regmem, "phxfs_regmem");
  T_GET(deregmem, "phxfs_deregmem");
  T_GET(read, "phxfs_read");
  T_GET(write, "phxfs_write");
  T_GET(read_batch, "phxfs_read_batch");
  T_GET(write_batch, "phxfs_write_batch");
  T_GET(submit_read, "phxfs_batch_submit_read");
  T_GET(submit_write, "phxfs_batch_submit_write");
  T_GET(wait, "phxfs_batch_wait");
  T_GET(destroy, "phxfs_batch_destroy");
  T_GET(engine_name, "phxfs_io_engine_name");
  T_GET(get_map_mode, "phxfs_get_map_mode");
#undef T_GET
  return !t_failed();
}

#endif
