/* Loading the library starts nothing, and shows nothing but the public calls. */
#include "t_load.h"

/* One child per look at the process, so that nothing has been loaded before. */
static void child_load(void) {
  struct t_api lib;
  t_leaks before;
  char line[4096];
  snprintf(line, sizeof line, "%s", t_lib());
  t_leaks_take(&before);
  int tasks = t_tasks();
  long rss = t_rss_kib();
  void *h = dlopen(line, RTLD_NOW);
  long grown = t_rss_kib() - rss;
  NEED(h, "dlopen: %s", dlerror());
  CHECK_EQ(t_tasks(), tasks, "threads after dlopen");
#ifndef __SANITIZE_ADDRESS__
  CHECK(grown <= 1024, "dlopen made %ld KiB resident, want at most 1024", grown);
#endif
  (void)grown;
  CHECK(t_load(&lib), "all functions");
  CHECK_EQ(t_tasks(), tasks, "threads after dlsym");
  int fds = before.fds;
  t_leaks after;
  t_leaks_take(&after);
  CHECK_EQ(after.fds, fds, "descriptors after dlopen: %s", after.fd_list);
}

/* Plain C needs no runtime: a single transfer on a CPU buffer starts no thread. */
static void child_cpu_io(void) {
  struct t_api lib;
  char b[4096];
  int fd = t_file(4096, 1), tasks = t_tasks();
  if (!t_load(&lib)) return;
  CHECK_OK(lib.read(fd, -1, b, 0, 4096, 0), 4096, "CPU buffer");
  CHECK_DATA(b, 4096, 1, 0, "CPU buffer");
  CHECK_OK(lib.write(fd, -1, b, 0, 4096, 0), 4096, "CPU buffer");
  CHECK_EQ(t_tasks(), tasks, "threads");
}

/* And the first call that needs it does start it: the checks above can fail. */
static void child_first_call(void) {
  struct t_api lib;
  char b[16];
  int tasks = t_tasks();
  setenv("PHXFS_VENDOR", "HOST", 1);
  if (!t_load(&lib)) return;
  phxfs_io_req_t q = {t_file(16, 1), -1, b, 0, 16, 0, 0};
  long rss = t_rss_kib();
  CHECK_OK(lib.read_batch(&q, 1), 0, "first call");
  CHECK(t_tasks() > tasks, "the runtime has no thread");
#ifndef __SANITIZE_ADDRESS__
  CHECK(t_rss_kib() - rss <= 8192, "the first call made %ld KiB resident, want at most 8192", t_rss_kib() - rss);
#endif
  (void)rss;
}

static void loading_starts_no_thread_and_takes_little_memory(void) { RUN_CHILD("load", NULL); }
static void loading_with_bind_now(void) { RUN_CHILD("load", "LD_BIND_NOW=1"); }
static void cpu_io_starts_no_thread(void) { RUN_CHILD("cpu_io", NULL); }
static void the_first_call_starts_threads(void) { RUN_CHILD("first_call", NULL); }

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The words of the output of a command, sorted, one blank between them. */
static void words(const char *command, char *to, size_t size) {
  char *list[512], word[256];
  size_t n = 0, at = 0;
  FILE *f = popen(command, "re");
  while (f && n < 512 && fscanf(f, "%255s", word) == 1) list[n++] = strdup(word);
  if (f) pclose(f);
  qsort(list, n, sizeof *list, compare);
  for (size_t i = 0; i < n; i++) {
    at += (size_t)snprintf(to + at, size - at, "%s ", list[i]);
    free(list[i]);
  }
}

static const char *const abi = /* docs/abi.md: never fewer than these */
  "phxfs_batch_destroy phxfs_batch_submit_read phxfs_batch_submit_write phxfs_batch_wait phxfs_close phxfs_deregmem "
  "phxfs_find_dev phxfs_get_map_mode phxfs_get_page_size phxfs_io_engine_name phxfs_open phxfs_read phxfs_read_batch phxfs_regmem "
  "phxfs_write phxfs_write_batch";

static void exports_are_the_public_functions(void) {
  char command[1024], have[8192] = "", want[8192] = "";
  if (system("command -v nm >/dev/null 2>&1")) T_SKIP("binutils", "nm");
  snprintf(command, sizeof command, "nm -D --defined-only '%s' | awk '{print $NF}'", t_lib());
  words(command, have, sizeof have);
  snprintf(command, sizeof command, "grep -o 'phxfs_[a-z_]*' '%s'", MAP_PATH);
  words(command, want, sizeof want);
  CHECK(!strcmp(have, want), "exported: %s want (phoenix.map): %s", have, want);
  char all[1024], *save = NULL;
  struct t_api lib;
  snprintf(all, sizeof all, "%s", abi);
  if (!t_load(&lib)) return;
  for (char *name = strtok_r(all, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
    Dl_info info;
    void *p = dlsym(lib.handle, name);
    CHECK(p && dladdr(p, &info) && !strcmp(info.dli_sname, name), "dlsym of %s", name);
  }
  CHECK(!dlsym(lib.handle, "go_phxfs_open"), "Go's own exports are hidden");
}

static void soname_and_needed_libraries(void) {
  char command[1024], text[8192] = "";
  if (system("command -v readelf >/dev/null 2>&1")) T_SKIP("binutils", "readelf");
  snprintf(command, sizeof command, "readelf -d '%s' | sed -n 's/.*SONAME.*\\[\\(.*\\)\\]/\\1/p'", t_lib());
  words(command, text, sizeof text);
  CHECK(!strcmp(text, "libphoenix.so "), "SONAME: %s", text);
  snprintf(command, sizeof command, "readelf -d '%s' | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p' | grep -vE '^(libc|libpthread|libdl|libresolv|ld-linux.*|libasan)[.]so'", t_lib());
  words(command, text, sizeof text);
  CHECK(!strcmp(text, "libphoenix.so ") || text[0] == 0, "libraries needed beyond the C library: %s", text);
  snprintf(command, sizeof command, "readelf -V '%s' | grep -c 'Version definition section' || true", t_lib());
  words(command, text, sizeof text);
  CHECK(!strcmp(text, "0 "), "version definitions: %s want none (binaries move both ways)", text);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(loading_starts_no_thread_and_takes_little_memory), T_CASE(loading_with_bind_now),
    T_CASE(cpu_io_starts_no_thread), T_CASE(the_first_call_starts_threads),
    T_CASE(exports_are_the_public_functions), T_CASE(soname_and_needed_libraries),
  };
  static const t_case children[] = {{"load", child_load}, {"cpu_io", child_cpu_io}, {"first_call", child_first_call}, {0}};
  return T_RUN(argc, argv, cases, children);
}
