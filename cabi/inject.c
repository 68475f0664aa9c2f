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

/* Calls from C into Go so far. Every exported function of Go comes this way
 * (runtime/cgo); the test build is linked with --wrap=crosscall2. cgo's own
 * trial link is not, hence weak. */
static uint64_t entries __attribute__((section(".data")));
void __real_crosscall2(void (*f)(void *), void *arg, int size, size_t context) __attribute__((weak));
void __wrap_crosscall2(void (*f)(void *), void *arg, int size, size_t context);

void __wrap_crosscall2(void (*f)(void *), void *arg, int size, size_t context) {
  __atomic_fetch_add(&entries, 1, __ATOMIC_RELAXED);
  __real_crosscall2(f, arg, size, context);
}

/* Entries into Go so far, this one included, and objects that Go has ever
 * allocated. Stops Go's world. */
API void phxfs_inject_counts(uint64_t *in, uint64_t *objects) {
  *objects = go_allocated();
  *in = __atomic_load_n(&entries, __ATOMIC_RELAXED);
}
#endif
