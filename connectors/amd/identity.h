#ifndef PHX_AMD_IDENTITY_H
#define PHX_AMD_IDENTITY_H

#include "../life/life.h"

/* phx_life_identity (life.h) of this vendor's library. */
int phx_amd_identity(uint64_t addr, uint64_t len, uint64_t *id);

#endif
