#ifndef PHX_AMD_IDENTITY_H
#define PHX_AMD_IDENTITY_H

#include <stdint.h>

/* Answers of phx_amd_identity: connectors.LifeState, whose values the Go
 * side proves equal at compile time. */
enum {
	PHX_LIFE_KNOWN = 0,   /* *id is the allocation's */
	PHX_LIFE_GONE = 1,    /* libamdhip64 is in the process and refuses to answer */
	PHX_LIFE_UNASKED = 2, /* no libamdhip64 in the process */
};

/* Stores in *id the identity of the allocation that holds addr and returns how
 * far it can be trusted; *id is written for PHX_LIFE_KNOWN only. Loads nothing,
 * needs no current device and no Go runtime, keeps errno. Any thread, also
 * inside an atexit handler; not inside a signal handler. */
int phx_amd_identity(uint64_t addr, uint64_t *id);

#endif
