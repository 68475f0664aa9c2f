/* live.h - the C table of live registrations.
 *
 * Registrations are Go's business; this table is what the exit handler (which
 * must work without Go) and a forked child need of them. Go fills it in
 * through core.Ledger; entries keep their address for the life of the process.
 * Layout of struct phx_pin = core.Pin (bridge.h). */
#ifndef PHX_LIVE_H
#define PHX_LIVE_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { /* phx_pin.state = core.PinState */
  PHX_PIN_FREE = 0,
  PHX_PIN_MAPPED = 1,   /* MAP succeeded: UNMAP and munmap are due */
  PHX_PIN_UNMAPPED = 2, /* only munmap is due */
  PHX_PIN_EMBEDDED = 3, /* memory of the caller: nothing is due */
};

enum { /* connectors.LifeState */
  PHX_LIFE_KNOWN = 0,
  PHX_LIFE_GONE = 1,
  PHX_LIFE_UNASKED = 2,
};

struct phx_pin {
  _Atomic uint32_t gate; /* 0 = open and unused; core/gate owns the bits */
  _Atomic uint32_t state;
  int32_t pid;
  int32_t fd;
  int32_t device;
  int32_t life;
  uint32_t refs;
  uint32_t pad;
  uint64_t addr;
  uint64_t host;
  uint64_t len;
  uint64_t identity;
};

#define PHX_CHUNKS 4096 /* 4 Mi registrations */

struct phx_live {
  _Atomic(struct phx_pin *) chunk[PHX_CHUNKS]; /* filled from 0 upwards, never freed */
};

struct phx_state;

/* In a forked child: nobody is inside any registration. */
void phx_live_forked(struct phx_state *s);

/* Releases what live pins owe the kernel, in the process that made them: UNMAP
 * (under the liveness rule of docs/abi.md) and munmap of every registration
 * with no I/O inside. No Go runs. Called by the exit handler only. */
void phx_live_release(struct phx_state *s);

#endif
