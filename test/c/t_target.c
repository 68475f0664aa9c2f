#include "t.h"

/* The live registrations, newest last; none on the host device. Under lock. */
enum { MOST = 16384 };
static struct row {
  uintptr_t addr;
  size_t len, references;
  char *target;
  int device;
} rows[MOST];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void hold(void) { pthread_mutex_lock(&lock); }
static void let_go(void) { pthread_mutex_unlock(&lock); }
static void survive_forks(void) { pthread_atfork(hold, let_go, let_go); }

bool t_emulated(void) { return getenv("T_EMULATED") != NULL; }

static struct row *find(int device, const void *addr, size_t len) {
  for (size_t i = used; i-- > 0;)
    if (rows[i].device == device && rows[i].addr == (uintptr_t)addr && rows[i].len == len) return &rows[i];
  return NULL;
}

static void drop(struct row *r) {
  used--;
  memmove(r, r + 1, (size_t)(rows + used - r) * sizeof *r);
}

void t_target_made(int device, const void *addr, size_t len, void *target) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, survive_forks);
  hold();
  struct row *r = find(device, addr, len);
  if (r && r->target != target) drop(r), r = NULL; /* its dereg has not told yet */
  if (r)
    r->references++;
  else if (used < MOST)
    rows[used++] = (struct row){(uintptr_t)addr, len, 1, target, device};
  else
    t_fail(__FILE__, __LINE__, "more than %d registrations", MOST);
  let_go();
}

void t_target_gone(int device, const void *addr, size_t len) {
  hold();
  struct row *r = find(device, addr, len);
  if (r && --r->references == 0) drop(r);
  let_go();
}

void t_target_closed(int device) {
  hold();
  for (size_t i = used; i-- > 0;)
    if (rows[i].device == device) drop(&rows[i]);
  let_go();
}

void *t_host(const void *addr) {
  char *host = (char *)(uintptr_t)addr;
  hold();
  for (size_t i = used; i-- > 0;)
    if ((uintptr_t)addr - rows[i].addr < rows[i].len) {
      host = rows[i].target + ((uintptr_t)addr - rows[i].addr);
      break;
    }
  let_go();
  return host;
}
