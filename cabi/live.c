#define _GNU_SOURCE
#include "live.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../include/phxfs_ioctl.h"
#include "bridge.h"
#include "log.h"
#include "state.h"

#define AT(field, offset) _Static_assert(offsetof(struct phx_pin, field) == offset, "phx_pin." #field)
_Static_assert(sizeof(struct phx_pin) == PHX_PIN_SIZE, "phx_pin");
AT(gate, PHX_PIN_GATE);
AT(state, PHX_PIN_STATE);
AT(pid, PHX_PIN_PID);
AT(fd, PHX_PIN_FD);
AT(device, PHX_PIN_DEVICE);
AT(life, PHX_PIN_LIFE);
AT(addr, PHX_PIN_ADDR);
AT(host, PHX_PIN_HOST);
AT(len, PHX_PIN_LEN);
AT(identity, PHX_PIN_IDENTITY);

void *phx_pins_grow(struct phx_state *s) {
  struct phx_live *t = &s->live;
  for (int i = 0; i < PHX_CHUNKS; i++) {
    if (atomic_load_explicit(&t->chunk[i], memory_order_relaxed)) continue;
    struct phx_pin *p = mmap(NULL, PHX_PINS_PER_CHUNK * sizeof *p, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    atomic_store(&t->chunk[i], p);
    return p;
  }
  return NULL;
}

void *phx_pins_chunk(struct phx_state *s, int i) {
  return i < PHX_CHUNKS ? atomic_load(&s->live.chunk[i]) : NULL;
}

/* Why UNMAP is left out, NULL: it is due. The rule and the words are those of
 * core/liveness.go. */
static const char *doubt(struct phx_state *s, const struct phx_pin *p) {
  int (*identity)(uint64_t, uint64_t, uint64_t *) =
      (int (*)(uint64_t, uint64_t, uint64_t *))atomic_load(&s->identity);
  uint64_t id = 0;
  int life = identity ? identity(p->addr, p->len, &id) : PHX_LIFE_UNASKED;
  if (p->life == PHX_LIFE_UNASKED)
    return life == p->life ? NULL : "the vendor's library came after regmem and cannot tell what was registered: UNMAP left out";
  if (p->life == PHX_LIFE_GONE) return "the vendor's library did not know the memory at regmem: UNMAP left out";
  if (life == PHX_LIFE_UNASKED)
    return "the vendor's library has left the process and cannot be asked for the memory: UNMAP left out";
  if (life == PHX_LIFE_GONE)
    return "device memory was freed before deregmem, or the vendor's library is shut down: UNMAP left out";
  if (id != p->identity) return "device memory was freed before deregmem, and other memory lies there: UNMAP left out";
  return NULL;
}

#define WHICH "call=exit device=%d address=0x%llx length=%llu "
#define ITS(p) (p)->device, (unsigned long long)(p)->addr, (unsigned long long)(p)->len

/* Refuses new users for good. False: somebody is inside. */
static bool shut(struct phx_pin *p) {
  return !(atomic_fetch_or(&p->gate, PHX_GATE_CLOSED) & ~PHX_GATE_CLOSED);
}

/* As internal/phxdev: EINTR means that nothing was done. */
#define INTERRUPTIONS 1000

/* A deregmem may still be inside after the 30 s: whoever moves the state from
 * MAPPED to UNMAPPED does the UNMAP and the munmap, and nobody else. */
static void release(struct phx_state *s, struct phx_pin *p) {
  uint32_t mapped = PHX_PIN_MAPPED;
  if (atomic_load(&p->state) != PHX_PIN_MAPPED) return;
  if (p->pid != getpid()) return; /* borrowed from a parent: the parent's to release */
  if (!shut(p)) { /* a leaked pin is better than DMA into memory that is somebody else's */
    phx_log(s, PHX_LOG_ERROR, WHICH "errno=EBUSY reason=\"I/O is still inside the registration: it stays pinned\"", ITS(p));
    return;
  }
  if (!atomic_compare_exchange_strong(&p->state, &mapped, PHX_PIN_UNMAPPED)) return;
  const char *why = doubt(s, p);
  if (why) {
    phx_log(s, PHX_LOG_WARN, WHICH "reason=\"%s\"", ITS(p), why);
  } else {
    struct phxfs_map_param m = {.c_vaddr = p->host, .c_size = p->len, .n_vaddr = p->addr,
                                .n_size = p->len};
    int tries = INTERRUPTIONS, failed;
    while ((failed = ioctl(p->fd, PHXFS_IOC_UNMAP, &m)) && errno == EINTR && --tries) {
    }
    if (failed) {
      phx_log(s, PHX_LOG_ERROR, WHICH "errno=%s reason=\"UNMAP failed: it stays pinned\"", ITS(p), phx_errno_name(errno));
      return;
    }
  }
  for (int tries = INTERRUPTIONS; munmap((void *)(uintptr_t)p->host, p->len) && errno == EINTR && --tries;) {
  }
}

void phx_live_release(struct phx_state *s) {
  for (int i = 0; i < PHX_CHUNKS; i++) {
    struct phx_pin *c = atomic_load(&s->live.chunk[i]);
    if (!c) return;
    for (int k = 0; k < PHX_PINS_PER_CHUNK; k++) release(s, &c[k]);
  }
}

/* The users that a pin counts are threads of the parent, which owns it: pid 0,
 * for in a pid namespace of its own a child can have the pid of its parent. A
 * pin that is being made or taken down there has the closed bit and stays
 * refused: its state tells the importer (ledger.go). */
void phx_live_forked(struct phx_state *s) {
  for (int i = 0; i < PHX_CHUNKS; i++) {
    struct phx_pin *c = atomic_load(&s->live.chunk[i]);
    if (!c) return;
    for (int k = 0; k < PHX_PINS_PER_CHUNK; k++) {
      c[k].pid = 0;
      atomic_fetch_and(&c[k].gate, PHX_GATE_CLOSED);
    }
  }
}
