/* pieces.h - one identity for a range of device memory.
 *
 * The driver has an id for each allocation, and memory mapped into reserved
 * addresses (cuMemMap: expandable segments of PyTorch, vLLM) is many of them in
 * a row. It drops the pin of a registration as soon as any of them is freed.
 * So the driver is asked for every piece: at the first address, and at each
 * multiple of PHX_PIECE behind it; the answers become one 64-bit value.
 * Smaller allocations beside each other in one piece are not told apart
 * (docs/limits.md).
 *
 * Used by life.h alone, which needs no Go: everything is static. */
#ifndef PHX_PIECES_H
#define PHX_PIECES_H

#include <stdint.h>

/* Bytes: the least that cuMemMap maps, and what its addresses are multiples of
 * (CU_MEM_ALLOC_GRANULARITY_MINIMUM; asked by ../nvidia/testdata/memory.c). */
#define PHX_PIECE (UINT64_C(2) << 20)

/* Where the piece behind the one at `at` begins. 0: beyond the last address. */
static inline uint64_t phx_piece_next(uint64_t at)
{
	return (at | (PHX_PIECE - 1)) + 1;
}

/* The value of a range so far (0: no piece yet) and one more piece. The first
 * piece alone is its id. Both arguments count in full: the finaliser of
 * MurmurHash3 is a bijection, so one piece with another id always changes the
 * value of the range; several do not with a chance of 2^-64. Equal neighbours
 * count each, so the value also tells which piece is whose. */
static inline uint64_t phx_piece_add(uint64_t range, uint64_t id)
{
	range = (range ^ range >> 33) * UINT64_C(0xff51afd7ed558ccd);
	range = (range ^ range >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return (range ^ range >> 33) ^ id;
}

#endif
