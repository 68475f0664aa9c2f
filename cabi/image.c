/* image.c - snapshot and restore of the library's writable memory.
 *
 * What it relies on is checked when the snapshot is taken, and a failed check
 * only means that forked children get -ENOSYS:
 *  - the writable memory that is not RELRO is one range (no second segment);
 *  - Go keeps one word per thread in ELF TLS, found through the image's only
 *    TPREL relocation, in a TLS segment of the size that Go's runtime has
 *    (cmd/link: runtime.tlsg; arm64 also runtime.tls_g);
 *  - the library stays where it is (DF_1_NODELETE);
 *  - lazy.ld moved exactly Go's one entry;
 *  - nothing has written to .bss, nor to this thread's Go word, so far.
 * Everything is read from our own ELF header: no loader lock, which another
 * thread may hold while it waits for us. */
#define _GNU_SOURCE
#include "image.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "start.h"

#if defined(__x86_64__)
#define R_TPREL R_X86_64_TPOFF64
#define GO_TLS_BYTES 8
static char *thread_pointer(void) {
  char *p;
  __asm__("mov %%fs:0, %0" : "=r"(p));
  return p;
}
#elif defined(__aarch64__)
#define R_TPREL R_AARCH64_TLS_TPREL
#define GO_TLS_BYTES 16
static char *thread_pointer(void) {
  char *p;
  __asm__("mrs %0, tpidr_el0" : "=r"(p));
  return p;
}
/* Set by a constructor of libgcc, for its out-of-line atomics: the one byte of
 * .bss that is not zero, and that a restore keeps. */
extern char __aarch64_have_lse_atomics __attribute__((visibility("hidden"), weak));
#endif

static char *cpu_byte(void) {
#if defined(__aarch64__)
  return &__aarch64_have_lse_atomics;
#else
  return NULL;
#endif
}

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static char *base(void) { return (char *)(uintptr_t)&__ehdr_start; }

static char *round_down(char *p) {
  return (char *)((uintptr_t)p & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1));
}

static char *round_up(char *p) { return round_down(p + sysconf(_SC_PAGESIZE) - 1); }

/* What the dynamic section says. glibc relocates its pointers in place, other
 * loaders do not. */
struct dynamic {
  const ElfW(Rela) *rela;
  size_t count;
  bool nodelete;
};

static struct dynamic read_dynamic(const ElfW(Dyn) *d) {
  struct dynamic r = {0};
  for (; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_RELA) r.rela = (const void *)(uintptr_t)d->d_un.d_ptr;
    if (d->d_tag == DT_RELASZ) r.count = d->d_un.d_val / sizeof *r.rela;
    if (d->d_tag == DT_FLAGS_1) r.nodelete = d->d_un.d_val & DF_1_NODELETE;
  }
  if (r.rela && (char *)r.rela < base()) r.rela = (const void *)(base() + (uintptr_t)r.rela);
  return r;
}

static int find_tls_word(struct phx_image *m, struct dynamic d) {
  int found = 0;
  for (size_t i = 0; i < d.count; i++)
    if (ELF64_R_TYPE(d.rela[i].r_info) == R_TPREL) {
      m->tls = *(ptrdiff_t *)(base() + d.rela[i].r_offset);
      found++;
    }
  return found;
}

static const char *measure(struct phx_image *m) {
  const ElfW(Ehdr) *e = &__ehdr_start;
  const ElfW(Phdr) *p = (const void *)(base() + e->e_phoff);
  char *relro_lo = NULL, *relro_hi = NULL;
  struct dynamic dynamic = {0};
  size_t tls_bytes = 0;
  int writable = 0;
  m->lo = base();
  for (int i = 0; i < e->e_phnum; i++) {
    char *at = base() + p[i].p_vaddr;
    if (p[i].p_type == PT_GNU_RELRO) relro_lo = at, relro_hi = round_down(at + p[i].p_memsz);
    if (p[i].p_type == PT_TLS) tls_bytes = p[i].p_memsz;
    if (p[i].p_type == PT_DYNAMIC) dynamic = read_dynamic((const void *)at);
  }
  for (int i = 0; i < e->e_phnum; i++) {
    char *lo = base() + p[i].p_vaddr, *hi = lo + p[i].p_memsz, *data_hi = lo + p[i].p_filesz;
    if (p[i].p_type != PT_LOAD) continue;
    if (hi > m->hi) m->hi = hi;
    if (!(p[i].p_flags & PF_W)) continue;
    if (relro_lo && relro_lo <= lo && lo < relro_hi) lo = relro_hi;
    if (lo >= hi) continue;
    m->rw_lo = lo, m->data_hi = data_hi, m->rw_hi = hi;
    writable++;
  }
  if (writable != 1 || m->data_hi < m->rw_lo) return "the writable memory is not one range";
  if (find_tls_word(m, dynamic) != 1) return "there is not exactly one TLS relocation";
  if (tls_bytes != GO_TLS_BYTES) return "the TLS segment has another size than Go's";
  if (!dynamic.nodelete) return "the library is not marked NODELETE";
  return NULL;
}

static void **go_word(const struct phx_image *m) { return (void **)(thread_pointer() + m->tls); }

static const char *untouched(const struct phx_image *m) {
  for (const char *p = m->data_hi; p < m->rw_hi; p++)
    if (*p && p != cpu_byte()) return "something wrote to .bss before Go started";
  return *go_word(m) ? "the thread's Go word is in use before Go started" : NULL;
}

void phx_image_take(struct phx_image *m) {
  if (m->snapshot) return; /* a child that was reset: the same image */
#ifdef PHX_NO_IMAGE
  m->why = "this build (a sanitizer, or another Go toolchain) is not reset in forked children";
  return;
#endif
  m->why = phx_start_entries() == 1 ? measure(m) : "the moved section does not hold Go's one entry";
  if (!m->why) m->why = untouched(m);
  if (m->why) return;
  size_t n = (size_t)(m->data_hi - m->rw_lo);
  char *copy = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) {
    m->why = "there was no memory for the snapshot";
    return;
  }
  memcpy(copy, m->rw_lo, n);
  mprotect(copy, n, PROT_READ);
  m->snapshot = copy;
}

void phx_image_restore(const struct phx_image *m) {
  char *whole = round_up(m->data_hi), *end = round_up(m->rw_hi), *cpu = cpu_byte();
  char kept = cpu ? *cpu : 0;
  memcpy(m->rw_lo, m->snapshot, (size_t)(m->data_hi - m->rw_lo));
  memset(m->data_hi, 0, (size_t)((whole < m->rw_hi ? whole : m->rw_hi) - m->data_hi));
  if (whole < m->rw_hi && madvise(whole, (size_t)(end - whole), MADV_DONTNEED))
    memset(whole, 0, (size_t)(m->rw_hi - whole));
  if (cpu) *cpu = kept;
  *go_word(m) = NULL;
}

void *phx_image_word(const struct phx_image *m) { return *go_word(m); }

bool phx_image_holds(const struct phx_image *m, const void *p) {
  return (const char *)p >= m->lo && (const char *)p < m->hi;
}
