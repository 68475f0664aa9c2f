/* phx_bench measures one library through its public functions. See options.c. */
#include "bench.h"

#include <dlfcn.h>
#include <stdarg.h>

static void leave(int status, const char *word, const char *format, va_list values) {
  fprintf(stderr, "phx_bench: %s", word);
  vfprintf(stderr, format, values);
  fputc('\n', stderr);
  exit(status);
}

void fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  leave(1, "", format, values);
  __builtin_unreachable();
}

void skip(const char *format, ...) {
  va_list values;
  va_start(values, format);
  leave(77, "skip: ", format, values);
  __builtin_unreachable();
}

void api_load(struct api *a, const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) fail("%s", dlerror());
#define GET(member, name) a->member = (__typeof__(a->member))dlsym(handle, name)
  GET(open, "phxfs_open");
  GET(close, "phxfs_close");
  GET(regmem, "phxfs_regmem");
  GET(deregmem, "phxfs_deregmem");
  GET(read, "phxfs_read");
  GET(write, "phxfs_write");
  GET(read_batch, "phxfs_read_batch");
  GET(write_batch, "phxfs_write_batch");
  GET(submit_read, "phxfs_batch_submit_read");
  GET(submit_write, "phxfs_batch_submit_write");
  GET(wait, "phxfs_batch_wait");
  GET(engine_name, "phxfs_io_engine_name");
#undef GET
}

int main(int argc, char **argv) {
  struct options o;
  struct api a;
  options_parse(&o, argc, argv);
  setenv("PHXFS_VENDOR", "HOST", 0);
  if (!o.json) machine_lines(stdout);
  if (!strcmp(o.mode, "load")) {
    mode_load(&o);
    return 0;
  }
  api_load(&a, o.lib);
  if (!strcmp(o.mode, "regmem")) {
    mode_regmem(&o, &a);
    return 0;
  }
  file_prepare(&o);
  if (!strcmp(o.mode, "batch")) mode_batch(&o, &a);
  else if (!strcmp(o.mode, "async") || !strcmp(o.mode, "submit")) mode_async(&o, &a);
  else if (!strcmp(o.mode, "single")) mode_single(&o, &a);
  else if (!strcmp(o.mode, "threads")) mode_threads(&o, &a);
  else if (!strcmp(o.mode, "huge")) mode_huge(&o, &a);
  else fail("no mode is called %s", o.mode);
  return 0;
}
