#include "inject.h"

#ifdef PHX_INJECT
#include "_cgo_export.h"

#define API __attribute__((visibility("default")))

/* In .data: image.c wants .bss untouched before Go starts. */
static int32_t left[PHX_INS] __attribute__((section(".data")));

int32_t *phx_inject_left(void) { return left; }

/* The next times passes of a place (inject.h) panic. */
API void phxfs_inject(int place, int times) { __atomic_store_n(&left[place], times, __ATOMIC_SEQ_CST); }

/* Passes that are still to panic. */
API int phxfs_inject_left(int place) { return __atomic_load_n(&left[place], __ATOMIC_SEQ_CST); }

/* Garbage collections so far, live bytes of Go's heap, bytes of Go's memory in
 * all; read without stopping the world. Starts nothing: call after a call. */
API void phxfs_inject_memory(uint64_t *cycles, uint64_t *heap, uint64_t *all) {
  struct go_memory_return r = go_memory();
  *cycles = r.r0, *heap = r.r1, *all = r.r2;
}
#endif
