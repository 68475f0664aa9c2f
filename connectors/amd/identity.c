#define _GNU_SOURCE
#include "identity.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "../../internal/dl/loaded.h"
#include "../pieces.h"

/* hipError_t hipPointerGetAttribute(void *data, hipPointer_attribute,
 * hipDeviceptr_t) and HIP_POINTER_ATTRIBUTE_BUFFER_ID (hip_runtime_api.h). The
 * documentation does not say whether 32 or 64 bits are stored: the zeroed
 * variable serves both. */
typedef int (*get_attribute)(void *data, int attribute, void *addr);
enum { BUFFER_ID = 7 };

/* The function, once a HIP runtime was seen in the process. The reference that
 * found it is kept, so the function stays there; later questions take no lock
 * of the loader, which matters at exit. Threads that race each keep a
 * reference. NULL again in a forked child whose image of this library was
 * reset. */
static _Atomic(get_attribute) found;

static void *loaded(void)
{
	static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"};
	void *hip = NULL;
	for (size_t i = 0; !hip && i < sizeof names / sizeof *names; i++)
		if (phx_loaded(names[i]) != PHX_LOADED_NO)
			hip = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
	return hip;
}

static int find(get_attribute *ask)
{
	*ask = atomic_load_explicit(&found, memory_order_acquire);
	if (*ask)
		return PHX_LIFE_KNOWN;
	void *hip = loaded();
	if (!hip)
		return PHX_LIFE_UNASKED;
	*ask = (get_attribute)dlsym(hip, "hipPointerGetAttribute");
	if (!*ask) {
		dlclose(hip);
		return PHX_LIFE_GONE;
	}
	atomic_store_explicit(&found, *ask, memory_order_release);
	return PHX_LIFE_KNOWN;
}

int phx_amd_identity(uint64_t addr, uint64_t len, uint64_t *id)
{
	int saved = errno;
	get_attribute ask;
	int state = find(&ask);
	uint64_t range = 0;
	for (uint64_t at = addr; state == PHX_LIFE_KNOWN && at - addr < len; at = phx_piece_next(at)) {
		uint64_t buffer = 0;
		if (ask(&buffer, BUFFER_ID, (void *)(uintptr_t)at) == 0)
			range = phx_piece_add(range, buffer);
		else
			state = PHX_LIFE_GONE;
	}
	if (state == PHX_LIFE_KNOWN)
		*id = range;
	errno = saved;
	return state;
}
