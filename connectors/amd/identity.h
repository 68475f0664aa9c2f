#ifndef PHX_AMD_IDENTITY_H
#define PHX_AMD_IDENTITY_H

#include <stdint.h>

/* Answers of phx_amd_identity: connectors.LifeState, whose values the Go
 * side proves equal at compile time. */
enum {
	PHX_LIFE_KNOWN = 0,   /* *id is the memory's */
	PHX_LIFE_GONE = 1,    /* libamdhip64 is in the process and refuses to answer for a part of it */
	PHX_LIFE_UNASKED = 2, /* no libamdhip64 in the process */
};

/* Stores in *id the identity of the memory at [addr, addr+len) bytes, that is of
 * all its pieces (pieces.h), and returns how far it can be trusted; *id is
 * written for PHX_LIFE_KNOWN only. len > 0, and addr+len does not overflow. One
 * question for each 2 MiB, up to the first refusal. Loads and allocates nothing,
 * needs no current device and no Go runtime, keeps errno. Any thread, also
 * inside an atexit handler; not inside a signal handler. */
int phx_amd_identity(uint64_t addr, uint64_t len, uint64_t *id);

#endif
