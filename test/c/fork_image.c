/* cabi/image.c by itself: what it snapshots and restores, and the assumptions
 * that it checks. The libraries are made from image_sample.c (Makefile). */
#include "t.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include "../../cabi/image.h"

struct sample {
  char *data, *bss;
  struct phx_image *(*image)(void);
  void **(*word)(void);
  void (*take)(void);
  void (*restore)(void);
  int (*holds)(const void *);
};

static bool load(struct sample *s, const char *variant) {
  char path[4096];
  snprintf(path, sizeof path, OUT_PATH "/image_%s.so", variant);
  void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!h) {
    t_fail(__FILE__, __LINE__, "dlopen: %s", dlerror());
    return false;
  }
  s->data = dlsym(h, "sample_data"), s->bss = dlsym(h, "sample_bss");
  s->image = dlsym(h, "sample_image"), s->word = dlsym(h, "sample_word");
  s->take = dlsym(h, "sample_take"), s->restore = dlsym(h, "sample_restore");
  s->holds = dlsym(h, "sample_holds");
  return true;
}

static void refuses(const char *variant, const char *why) {
  struct sample s;
  if (!load(&s, variant)) return;
  s.take();
  CHECK(s.image()->why && strstr(s.image()->why, why), "%s: got %s, want %s", variant, s.image()->why, why);
  CHECK(!s.image()->snapshot, "%s: it has a snapshot", variant);
}

static void child_restores(void) {
  struct sample s;
  if (!load(&s, "good")) return;
  s.data[69999] = 7; /* before the snapshot */
  s.take();
  NEED(!s.image()->why, "the sample is good: %s", s.image()->why);
  for (int round = 0; round < 3; round++) {
    memset(s.data, 0x55, 70000), memset(s.bss, 0x55, 300000), *s.word() = &s;
    s.restore();
    CHECK(s.data[0] == 1 && s.data[2] == 3 && s.data[3] == 0 && s.data[69998] == 0, "data");
    CHECK_EQ(s.data[69999], 7, "data as at the snapshot, not as in the file");
    for (int i = 0; i < 300000; i++)
      if (s.bss[i]) NEED(0, "bss at %d is %#x", i, s.bss[i]);
    CHECK(!*s.word(), "the thread's word");
    s.take(); /* again in a child: nothing new */
  }
  CHECK(s.holds(s.data) && s.holds((void *)s.take) && s.holds(s.bss + 299999), "what is inside");
  CHECK(!s.holds(&s) && !s.holds((void *)dlopen) && !s.holds(NULL), "what is outside");
}
static void child_restores_mlocked(void) { /* MADV_DONTNEED is refused there */
  struct sample s;
  if (!load(&s, "good")) return;
  s.take();
  memset(s.bss, 0x55, 300000);
  NEED(!mlock(s.bss, 300000), "mlock: %s", t_errno(errno));
  s.restore();
  for (int i = 0; i < 300000; i++)
    if (s.bss[i]) NEED(0, "bss at %d is %#x", i, s.bss[i]);
}
static void child_bss(void) {
  struct sample s;
  if (!load(&s, "good")) return;
  s.bss[299999] = 1;
  s.take();
  CHECK(s.image()->why && strstr(s.image()->why, ".bss"), "got %s", s.image()->why);
}
static void child_word(void) {
  struct sample s;
  if (!load(&s, "good")) return;
  *s.word() = &s;
  s.take();
  CHECK(s.image()->why && strstr(s.image()->why, "Go word"), "got %s", s.image()->why);
}

static void writable_memory_and_tls_word_come_back(void) { RUN_CHILD("restores", NULL); }
static void locked_memory_comes_back(void) { RUN_CHILD("restores_mlocked", NULL); }
static void bss_must_be_untouched(void) { RUN_CHILD("bss", NULL); }
static void the_word_must_be_unused(void) { RUN_CHILD("word", NULL); }
static void one_entry(void) { refuses("two_entries", "one entry"), refuses("no_entry", "one entry"); }
static void one_tls_relocation(void) { refuses("second_tls", "one TLS relocation"); }
static void tls_of_gos_size(void) { refuses("wide_tls", "size"); }
static void marked_nodelete(void) { refuses("deletable", "NODELETE"); }
static void one_writable_range(void) { refuses("second_range", "not one range"); }

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(writable_memory_and_tls_word_come_back), T_CASE(locked_memory_comes_back), T_CASE(bss_must_be_untouched),
    T_CASE(the_word_must_be_unused), T_CASE(one_entry), T_CASE(one_tls_relocation), T_CASE(tls_of_gos_size),
    T_CASE(marked_nodelete), T_CASE(one_writable_range),
  };
  static const t_case children[] = {
    {"restores", child_restores}, {"restores_mlocked", child_restores_mlocked}, {"bss", child_bss}, {"word", child_word}, {0}};
  return T_RUN(argc, argv, cases, children);
}
