#define _GNU_SOURCE
#include "identity.h"

static struct phx_life cuda = {.libraries = {"libcuda.so.1"}, .function = "cuPointerGetAttribute"};

int phx_nvidia_identity(uint64_t addr, uint64_t len, uint64_t *id)
{
	return phx_life_identity(&cuda, addr, len, id);
}
