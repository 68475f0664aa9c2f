/* bridge.h - what the Go half of cabi sees of the C half (cgo reads it; it
 * must hold no _Atomic types, which cgo does not understand). */
#ifndef PHX_BRIDGE_H
#define PHX_BRIDGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../include/phoenix.h"
#include "env.h"
#include "inject.h"
#include "log.h"

struct phx_state;

/* Layout of struct phx_pin (live.h) and core.Pin: each side proves that it
 * has these (live.c, layout.go). */
#define PHX_PIN_SIZE 64
#define PHX_PIN_GATE 0
#define PHX_PIN_STATE 4
#define PHX_PIN_PID 8
#define PHX_PIN_FD 12
#define PHX_PIN_DEVICE 16
#define PHX_PIN_LIFE 20
#define PHX_PIN_ADDR 32
#define PHX_PIN_HOST 40
#define PHX_PIN_LEN 48
#define PHX_PIN_IDENTITY 56

/* A gate with this bit refuses all comers (gate.ClosedBit). */
#define PHX_GATE_CLOSED 0x80000000u

#define PHX_PINS_PER_CHUNK 1024

/* Adds PHX_PINS_PER_CHUNK zeroed pins to the C table of live registrations and
 * returns the first, or NULL when memory or the table is exhausted. The caller
 * serialises. */
void *phx_pins_grow(struct phx_state *s);

/* The i-th chunk of that table, NULL beyond the last. */
void *phx_pins_chunk(struct phx_state *s, int i);

/* phxfs_open calls not yet matched of device 0..7; a forked child reads what
 * its parent wrote. */
int32_t phx_opens(struct phx_state *s, int device);
void phx_set_opens(struct phx_state *s, int device, int32_t opens);

/* How many forks lie between the process that loaded the library and this. */
uint32_t phx_generation(struct phx_state *s);

/* The word in which Go keeps the number of async batches with I/O queued or
 * running, for the exit handler; accessed atomically on both sides. */
int32_t *phx_async_word(struct phx_state *s);

/* The table of the descriptors that rings hold (rings.h, engine.RingFDs);
 * accessed atomically on both sides. */
#define PHX_RING_FDS 64
int32_t *phx_ring_fds(struct phx_state *s);

/* f: int (*)(uint64_t addr, uint64_t len, uint64_t *id), for the exit handler; 0: none. */
void phx_set_identity(struct phx_state *s, uintptr_t f);

/* How many idle threads Go gets at its start (threads.c). */
#define PHX_SPARE_THREADS 3

/* Whether Go can have n threads besides its own and the engine's helpers, in
 * all, counting those that there are: 0 or EAGAIN. */
int phx_room(struct phx_state *s, int n);

/* Registers the exit handler once more, before the first MAP (exit.h). */
void phx_exit_arm_pins(void);

#endif
