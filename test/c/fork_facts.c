/* What the reset in forked children relies on, seen in this build: one failing
 * case here says that the Go runtime is another than the one that cabi/fork.c
 * and cabi/image.c were written for. This program's own pthread_key_create,
 * sigaction and getrandom stand before libc's and keep books. */
#include "fork_kit.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static struct books {
  atomic_int keys, random_calls;
  atomic_int installed[65]; /* by somebody outside libc and this program */
  unsigned char random[64][16];
} *books; /* shared with the children */

static char *lo, *hi; /* the library's image */
static bool in_library(const void *p) { return (char *)p >= lo && (char *)p < hi; }

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
  static __typeof__(&pthread_key_create) real;
  if (!real) real = dlsym(RTLD_NEXT, "pthread_key_create");
  if (books && destructor && in_library(__builtin_return_address(0))) books->keys++; /* the shim's own has none */
  return real(key, destructor);
}

int sigaction(int sig, const struct sigaction *act, struct sigaction *old) {
  static __typeof__(&sigaction) real;
  if (!real) real = dlsym(RTLD_NEXT, "sigaction");
  if (books && act && in_library((void *)(uintptr_t)act->sa_sigaction)) books->installed[sig]++;
  return real(sig, act, old);
}

ssize_t getrandom(void *to, size_t n, unsigned flags) {
  ssize_t r = syscall(SYS_getrandom, to, n, flags);
  if (books && n == 16 && in_library(__builtin_return_address(0))) memcpy(books->random[books->random_calls++ % 64], to, 16);
  return r;
}

static int find(struct dl_phdr_info *i, size_t size, void *out) {
  (void)size;
  if (!strstr(i->dlpi_name, "libphoenix")) return 0;
  for (int k = 0; k < i->dlpi_phnum; k++) {
    const ElfW(Phdr) *p = &i->dlpi_phdr[k];
    char *at = (char *)i->dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_LOAD && (!lo || at < lo)) lo = at;
    if (p->p_type == PT_LOAD && at + p->p_memsz > hi) hi = at + p->p_memsz;
  }
  *(struct dl_phdr_info *)out = *i;
  return 1;
}

static struct dl_phdr_info image;

static void one_tls_word_of_go(void) {
  NOT_ASAN(); /* settle.h has a word there, too */
#if defined(__x86_64__)
  enum { BYTES = 8, TPREL = R_X86_64_TPOFF64 };
#else
  enum { BYTES = 16, TPREL = R_AARCH64_TLS_TPREL };
#endif
  int words = 0, writable = 0;
  for (int k = 0; k < image.dlpi_phnum; k++) {
    const ElfW(Phdr) *p = &image.dlpi_phdr[k];
    char *at = (char *)image.dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_TLS) CHECK_EQ(p->p_memsz, BYTES, "bytes of TLS: Go's word, and none of the shim's");
    if (p->p_type == PT_LOAD && p->p_flags & PF_W) writable++;
    if (p->p_type != PT_DYNAMIC) continue;
    const ElfW(Rela) *r = NULL;
    size_t n = 0;
    for (const ElfW(Dyn) *d = (void *)at; d->d_tag != DT_NULL; d++) {
      if (d->d_tag == DT_RELA) r = (void *)d->d_un.d_ptr;
      if (d->d_tag == DT_RELASZ) n = d->d_un.d_val / sizeof *r;
      if (d->d_tag == DT_FLAGS_1) CHECK(d->d_un.d_val & DF_1_NODELETE, "NODELETE");
    }
    for (size_t i = 0; i < n; i++) words += ELF64_R_TYPE(r[i].r_info) == TPREL;
  }
  CHECK_EQ(words, 1, "TLS relocations");
  CHECK_EQ(writable, 1, "writable segments");
}

static void dispositions(struct sigaction *to) {
  for (int s = 1; s < 65; s++) sigaction(s, NULL, &to[s]);
}

/* Go's handlers stay for the synchronous signals, are given back for two
 * others, and touch no more. */
static void signals_of_go(void) {
  static struct sigaction before[65], after[65];
  dispositions(before);
  CHECK_EQ(phxfs_find_dev(1), 1, "first call");
  dispositions(after);
  for (int s = 1; s < 65; s++) {
    bool stays = s == SIGSEGV || s == SIGBUS || s == SIGFPE, comes = stays || s == SIGPIPE || s == SIGURG;
    if (books->installed[s] && !comes) CHECK(0, "Go installs a handler for signal %d, which cabi/fork.c does not know", s);
    if (!books->installed[s] && comes) CHECK(0, "Go installs no handler for signal %d any more", s);
    CHECK_EQ(in_library((void *)(uintptr_t)after[s].sa_sigaction), stays, "signal %d is Go's after the start", s);
    if (!stays) CHECK(after[s].sa_sigaction == before[s].sa_sigaction, "signal %d is another's after the start", s);
  }
}

static void one_pthread_key(void) { CHECK_EQ(books->keys, 1, "keys that the runtime has made"); }

/* The threads by which a start tries whether it can have some go a little later. */
static bool few_threads(void) { return T_EVENTUALLY(t_tasks() - 1 <= 16); }

static void few_descriptors_and_threads(void) {
  t_leaks now;
  t_leaks_take(&now);
  CHECK(now.pool <= 2, "descriptors of a runtime: %d", now.pool);
  free(now.fd_list), free(now.map_list);
  CHECK(few_threads() && t_tasks() > 1, "threads of a runtime: %d", t_tasks() - 1);
}

static void child_starts(void *depth) {
  t_leaks before, now;
  int keys = books->keys, calls = books->random_calls;
  t_leaks_take(&before);
  CHECK_EQ(phxfs_find_dev(1), 1, "first call of a child");
  CHECK_EQ(books->keys - keys, 1, "keys that the child's runtime has made");
  CHECK_EQ(books->random_calls - calls, 1, "a start takes random bytes of its own");
  t_leaks_take(&now);
  CHECK(now.fds == before.fds && now.pool - before.pool <= 2, "descriptors of a generation: %d: %s", now.pool - before.pool, now.fd_list);
  CHECK(few_threads(), "threads of a runtime: %d", t_tasks() - 1);
  if (depth) CHECK_EXIT(t_fork(child_starts, (void *)((long)depth - 1)), 0, "grandchild");
}
static void a_generation_costs_one_key_and_two_descriptors(void) {
  NEED_RESET();
  CHECK_EXIT(t_fork(child_starts, (void *)3L), 0, "child");
}

static void siblings_have_random_numbers_of_their_own(void) {
  NEED_RESET();
  for (int i = 0; i < 4; i++) CHECK_EXIT(t_fork(child_starts, NULL), 0, "sibling");
  for (int i = 0; i < books->random_calls; i++)
    for (int k = 0; k < i; k++) CHECK(memcmp(books->random[i], books->random[k], 16), "starts %d and %d got the same bytes", i, k);
}

/* pthread keys come back: a child has 1024 in all. */
static void child_makes_keys(void *arg) {
  pthread_key_t k;
  int n = 0;
  (void)arg;
  CHECK_EQ(phxfs_find_dev(1), 1, "child");
  while (!pthread_key_create(&k, NULL)) n++;
  CHECK(n >= PTHREAD_KEYS_MAX - 20, "%d keys are left in a child", n);
}
static void keys_of_the_parent_are_given_up(void) {
  NEED_RESET();
  CHECK_EXIT(t_fork(child_makes_keys, NULL), 0, "child");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(one_tls_word_of_go), T_CASE(signals_of_go), T_CASE(one_pthread_key), T_CASE(few_descriptors_and_threads),
    T_CASE(a_generation_costs_one_key_and_two_descriptors), T_CASE(siblings_have_random_numbers_of_their_own),
    T_CASE(keys_of_the_parent_are_given_up),
  };
  kit_make();
  dl_iterate_phdr(find, &image);
  books = mmap(NULL, sizeof *books, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!lo || books == MAP_FAILED) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
