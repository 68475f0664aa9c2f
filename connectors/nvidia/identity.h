#ifndef PHX_NVIDIA_IDENTITY_H
#define PHX_NVIDIA_IDENTITY_H

#include <stdint.h>

/* Answers of phx_nvidia_identity: connectors.LifeState, whose values the Go
 * side proves equal at compile time. */
enum {
	PHX_LIFE_KNOWN = 0,   /* *id is the memory's */
	PHX_LIFE_GONE = 1,    /* libcuda is in the process and refuses to answer for a part of it */
	PHX_LIFE_UNASKED = 2, /* no libcuda in the process */
};

/* Stores in *id the identity of the memory at [addr, addr+len) bytes, that is of
 * all its pieces (pieces.h), and returns how far it can be trusted; *id is
 * written for PHX_LIFE_KNOWN only. len > 0, and addr+len does not overflow. One
 * question for each 2 MiB, up to the first refusal. Loads and allocates nothing,
 * needs no current context and no Go runtime, keeps errno. Any thread, also
 * inside an atexit handler; not inside a signal handler. */
int phx_nvidia_identity(uint64_t addr, uint64_t len, uint64_t *id);

#endif
