#define _GNU_SOURCE
#include "identity.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "../../internal/dl/loaded.h"
#include "../pieces.h"

/* CUresult cuPointerGetAttribute(void *data, CUpointer_attribute, CUdeviceptr)
 * and CU_POINTER_ATTRIBUTE_BUFFER_ID, an unsigned long long (cuda.h). */
typedef int (*get_attribute)(void *data, int attribute, uint64_t addr);
enum { BUFFER_ID = 7 };

/* The function, once libcuda was seen in the process. The reference that found
 * it is kept, so the function stays there; later questions take no lock of the
 * loader, which matters at exit. Threads that race each keep a reference.
 * NULL again in a forked child whose image of this library was reset. */
static _Atomic(get_attribute) found;

static int find(get_attribute *ask)
{
	*ask = atomic_load_explicit(&found, memory_order_acquire);
	if (*ask)
		return PHX_LIFE_KNOWN;
	if (phx_loaded("libcuda.so.1") == PHX_LOADED_NO)
		return PHX_LIFE_UNASKED;
	void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!cuda)
		return PHX_LIFE_UNASKED;
	*ask = (get_attribute)dlsym(cuda, "cuPointerGetAttribute");
	if (!*ask) {
		dlclose(cuda);
		return PHX_LIFE_GONE;
	}
	atomic_store_explicit(&found, *ask, memory_order_release);
	return PHX_LIFE_KNOWN;
}

int phx_nvidia_identity(uint64_t addr, uint64_t len, uint64_t *id)
{
	int saved = errno;
	get_attribute ask;
	int state = find(&ask);
	uint64_t range = 0;
	for (uint64_t at = addr; state == PHX_LIFE_KNOWN && at - addr < len; at = phx_piece_next(at)) {
		unsigned long long buffer = 0;
		if (ask(&buffer, BUFFER_ID, at) == 0)
			range = phx_piece_add(range, buffer);
		else
			state = PHX_LIFE_GONE;
	}
	if (state == PHX_LIFE_KNOWN)
		*id = range;
	errno = saved;
	return state;
}
