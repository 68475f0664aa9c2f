#define _GNU_SOURCE
#include "identity.h"

static struct phx_life hip = {
	.libraries = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"},
	.function = "hipPointerGetAttribute",
};

int phx_amd_identity(uint64_t addr, uint64_t len, uint64_t *id)
{
	return phx_life_identity(&hip, addr, len, id);
}
