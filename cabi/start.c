/* start.c - lazy start: Go's entry, which the linker script lazy.ld took out
 * of .init_array, is run by the first call that needs Go.
 *
 * No lock is held across fork(): whether Go runs here is a word in a page that
 * fork empties, whether Go's memory was ever touched is a flag that fork copies.
 * fork.c puts that memory back in a child and takes the flag away; a child that
 * finds "asleep, touched" was made without it, and refuses (ENOSYS). */
#define _GNU_SOURCE
#include "start.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "bridge.h"
#include "exit.h"
#include "signals.h"
#include "state.h"
#include "threads.h"

typedef void (*phx_init)(int argc, char **argv, char **envp);
/* Weak for `go test`, which links without lazy.ld; test/linked.sh fails a
 * library that has none. */
extern phx_init phx_init_start[] __attribute__((visibility("hidden"), weak));
extern phx_init phx_init_end[] __attribute__((visibility("hidden"), weak));

/* What Go must be able to get, or it aborts the process: it reserves its heap
 * arenas, starts threads of its own, and the helpers at the first batch that is
 * worth them. Once Go has decided to make a thread it wakes no idle one instead,
 * so the start hangs for want of one. How many it makes depends on how slow they
 * are: 7 as a rule, up to 14 were seen on a machine with many more busy threads
 * than processors. */
#define RESERVE_BYTES ((size_t)2 << 30)
#define START_THREADS 20

static int usable_cores(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* engine.Config.Helpers: by default min(cores - 1, most), at least 1. */
#define HELPERS 4
#define STAGING_HELPERS 10
static int helpers(const struct phx_env *e, int most) {
  int n = usable_cores() - 1;
  return e->workers ? e->workers : n < 1 ? 1 : n > most ? most : n;
}

static int preflight(const struct phx_env *e) {
  void *p = mmap(NULL, RESERVE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return ENOMEM;
  munmap(p, RESERVE_BYTES);
  return phx_thread_room(START_THREADS + helpers(e, HELPERS));
}

int phx_room(struct phx_state *s, int n) {
  struct phx_env *e = atomic_load(&s->env);
  int missing = START_THREADS + (e ? helpers(e, STAGING_HELPERS) : 0) + n - atomic_load(&s->threads);
  return missing > 0 ? phx_thread_room(missing) : 0;
}

static int max_procs(const struct phx_env *e) {
  int cores = usable_cores(), workers = e->workers ? e->workers : e->mode == PHX_MODE_FULL ? HELPERS : STAGING_HELPERS;
  int n = cores > workers + 16 ? cores : workers + 16;
  return n > 128 ? 128 : n;
}

/* The argument, environment and auxiliary vectors that Go sees instead of the
 * host's: its own settings, none of the host's (docs/architecture.md says why
 * the collector is off), and random bytes of its own. Go keeps pointers into
 * it, so it is never freed. */
struct block {
  char *argv[2];
  char *envp[5];
  Elf64_auxv_t aux[8];
  char procs[32];
  unsigned char random[16];
};

static struct block *make_block(const struct phx_env *e) {
  struct block *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (b == MAP_FAILED) return NULL;
  snprintf(b->procs, sizeof b->procs, "GOMAXPROCS=%d", max_procs(e));
  b->argv[0] = (char *)"libphoenix";
  b->envp[0] = b->procs;
  b->envp[1] = (char *)"GOGC=off";
  b->envp[2] = (char *)"GOMEMLIMIT=256MiB";
  b->envp[3] = (char *)"GODEBUG=asyncpreemptoff=1,updatemaxprocs=0,containermaxprocs=0";
  static const unsigned long copied[] = {AT_PAGESZ, AT_HWCAP, AT_HWCAP2, AT_SYSINFO_EHDR, AT_SECURE};
  int n = 0;
  for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
    unsigned long v = getauxval(copied[i]);
    if (v || copied[i] == AT_SECURE) b->aux[n++] = (Elf64_auxv_t){.a_type = copied[i], .a_un.a_val = v};
  }
  if (getrandom(b->random, sizeof b->random, GRND_NONBLOCK) == (ssize_t)sizeof b->random)
    b->aux[n++] = (Elf64_auxv_t){.a_type = AT_RANDOM, .a_un.a_val = (uintptr_t)b->random};
  return b; /* aux ends with AT_NULL: zeroed memory */
}

static int run_entry(struct phx_state *s, struct phx_env *e) {
  struct block *b = make_block(e);
  if (!b) return ENOMEM;
  phx_fork_prepare(s);
  sigset_t all, mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask); /* the host's signals go to the host's threads */
  phx_fork_park(s);
  atomic_store(&s->touched, true);
  struct phx_dispositions host;
  struct rlimit files;
  bool limited = !getrlimit(RLIMIT_NOFILE, &files);
  phx_signals_before(s, &host);
  for (phx_init *f = phx_init_start; f < phx_init_end; f++) (*f)(1, b->argv, b->envp);
  int err = go_start(s, e); /* waits until Go is up */
  if (limited) setrlimit(RLIMIT_NOFILE, &files); /* package syscall raises the soft limit */
  phx_signals_after(s, &host);
  phx_fork_unpark(s);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  if (!err) phx_exit_arm();
  return err;
}

static void settle(struct phx_guard *g, uint32_t word) {
  atomic_store_explicit(&g->word, word, memory_order_release);
  syscall(SYS_futex, &g->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

int phx_start(struct phx_state *s) {
  struct phx_guard *g = s->guard;
  for (;;) {
    uint32_t w = PHX_ASLEEP;
    if (atomic_compare_exchange_strong(&g->word, &w, PHX_STARTING)) break;
    if (w == PHX_AWAKE) return 0;
    syscall(SYS_futex, &g->word, FUTEX_WAIT_PRIVATE, PHX_STARTING, NULL, NULL, 0);
  }
  int cancel, err = ENOSYS;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  struct phx_env *e = atomic_load(&s->env);
  if (!atomic_load(&s->touched)) err = e ? preflight(e) : ENOMEM;
  if (!err) err = run_entry(s, e);
  settle(g, err ? PHX_ASLEEP : PHX_AWAKE);
  pthread_setcancelstate(cancel, NULL);
  return err;
}

int phx_start_entries(void) { return (int)(phx_init_end - phx_init_start); }

const char *phx_start_reason(struct phx_state *s, int err) {
  switch (err) {
    case ENOSYS: return s->fork.image.why ? s->fork.image.why : "the process was made without fork(3), or the kernel is older than 4.14";
    case EAGAIN: return "the threads that the library needs cannot be started (pids.max, RLIMIT_NPROC)";
    case ESHUTDOWN: return "the process is exiting";
    default: return "the library's runtime needs 2 GiB of address space (RLIMIT_AS) and some memory";
  }
}
