#ifndef PHX_NVIDIA_IDENTITY_H
#define PHX_NVIDIA_IDENTITY_H

#include <stdint.h>

/* Answers of phx_nvidia_identity: connectors.LifeState, whose values the Go
 * side proves equal at compile time. */
enum {
	PHX_LIFE_KNOWN = 0,   /* *id is the allocation's */
	PHX_LIFE_GONE = 1,    /* libcuda is in the process and refuses to answer */
	PHX_LIFE_UNASKED = 2, /* no libcuda in the process */
};

/* Stores in *id the identity of the allocation that holds addr and returns how
 * far it can be trusted; *id is written for PHX_LIFE_KNOWN only. Loads nothing,
 * needs no current context and no Go runtime, keeps errno. Any thread, also
 * inside an atexit handler; not inside a signal handler. */
int phx_nvidia_identity(uint64_t addr, uint64_t *id);

#endif
