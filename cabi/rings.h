/* rings.h - the descriptors of rings, which a forked child inherits and must
 * close: its own runtime makes others, and its children would inherit both. */
#ifndef PHX_RINGS_H
#define PHX_RINGS_H

#include <stdatomic.h>
#include <stdint.h>

#include "bridge.h"

struct phx_rings {
  _Atomic int32_t held[PHX_RING_FDS]; /* number + 1, 0: free; written by Go (engine.RingFDs) */
};

struct phx_state;

/* In a forked child: closes what the parent held. */
void phx_rings_forked(struct phx_state *s);

#endif
