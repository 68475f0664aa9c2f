#ifndef PHX_NVIDIA_IDENTITY_H
#define PHX_NVIDIA_IDENTITY_H

#include "../life/life.h"

/* phx_life_identity (life.h) of this vendor's library. */
int phx_nvidia_identity(uint64_t addr, uint64_t len, uint64_t *id);

#endif
