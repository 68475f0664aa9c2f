/* life.h - the identity of device memory, asked of a vendor's library that is
 * in the process already. CUDA and HIP answer the same question; a connector's
 * identity.c gives it its names. Needs no Go: everything is static. */
#ifndef PHX_LIFE_H
#define PHX_LIFE_H

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../../internal/dl/loaded.h"
#include "pieces.h"

/* connectors.LifeState, whose values life.go proves equal at compile time. */
enum {
	PHX_LIFE_KNOWN = 0,   /* *id is the memory's */
	PHX_LIFE_GONE = 1,    /* the library is in the process and refuses to answer for a part of it */
	PHX_LIFE_UNASKED = 2, /* no such library in the process */
};

/* Stores an attribute of the allocation at addr, 0 for success. The vendors
 * declare addr as an integer (CUdeviceptr) or a pointer (hipDeviceptr_t), which
 * are passed alike. */
typedef int (*phx_get_attribute)(void *data, int attribute, uint64_t addr);

/* CU_POINTER_ATTRIBUTE_BUFFER_ID (cuda.h), HIP_POINTER_ATTRIBUTE_BUFFER_ID
 * (hip_runtime_api.h). CUDA stores 64 bits; HIP's documentation does not say
 * whether 32 or 64: the zeroed variable serves both. */
enum { PHX_BUFFER_ID = 7 };

struct phx_life {
	const char *libraries[4]; /* base names, best first, then NULL; set once */
	const char *function;     /* a phx_get_attribute; set once */

	/* The function, once the library was seen in the process. The reference
	 * that found it is kept, so the function stays there; later questions take
	 * no lock of the loader, which matters at exit. Threads that race each keep
	 * a reference. NULL again in a forked child whose image of this library
	 * was reset. */
	_Atomic(phx_get_attribute) found;
};

static inline int phx_life_find(struct phx_life *v, phx_get_attribute *ask)
{
	*ask = atomic_load_explicit(&v->found, memory_order_acquire);
	if (*ask)
		return PHX_LIFE_KNOWN;
	void *library = NULL;
	for (int i = 0; !library && v->libraries[i]; i++)
		if (phx_loaded(v->libraries[i]) != PHX_LOADED_NO)
			library = dlopen(v->libraries[i], RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return PHX_LIFE_UNASKED;
	*ask = (phx_get_attribute)dlsym(library, v->function);
	if (!*ask) {
		dlclose(library);
		return PHX_LIFE_GONE;
	}
	atomic_store_explicit(&v->found, *ask, memory_order_release);
	return PHX_LIFE_KNOWN;
}

/* Stores in *id the identity of the memory at [addr, addr+len) bytes, that is of
 * all its pieces (pieces.h), and returns how far it can be trusted; *id is
 * written for PHX_LIFE_KNOWN only. len > 0, and addr+len does not overflow. One
 * question for each 2 MiB, up to the first refusal. Loads and allocates nothing,
 * needs no current device or context and no Go runtime, keeps errno. Any thread,
 * also inside an atexit handler; not inside a signal handler. */
static inline int phx_life_identity(struct phx_life *v, uint64_t addr, uint64_t len, uint64_t *id)
{
	int saved = errno;
	phx_get_attribute ask;
	int state = phx_life_find(v, &ask);
	uint64_t range = 0;
	for (uint64_t at = addr; state == PHX_LIFE_KNOWN && at - addr < len; at = phx_piece_next(at)) {
		uint64_t buffer = 0;
		if (ask(&buffer, PHX_BUFFER_ID, at) == 0)
			range = phx_piece_add(range, buffer);
		else
			state = PHX_LIFE_GONE;
	}
	if (state == PHX_LIFE_KNOWN)
		*id = range;
	errno = saved;
	return state;
}

#endif
