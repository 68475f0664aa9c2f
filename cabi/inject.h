/* inject.h - places where a test build (tag phx_inject, `make inject`) can be
 * told to panic. In any other build none of it exists. */
#ifndef PHX_INJECT_H
#define PHX_INJECT_H

#include <stdint.h>

/* Panics in the call that is named, right after its recovery is set up; then
 * in what calls use: each may be hit on any thread that works on a batch. */
enum {
  PHX_IN_OPEN, PHX_IN_CLOSE, PHX_IN_PAGE_SIZE, PHX_IN_FIND_DEV, PHX_IN_REGMEM, PHX_IN_DEREGMEM,
  PHX_IN_TRANSFER, PHX_IN_SINGLE_SHORT, PHX_IN_BATCH, PHX_IN_SUBMIT, PHX_IN_WAIT, PHX_IN_DESTROY,
  PHX_IN_MAP_MODE, PHX_IN_ENGINE_NAME, PHX_IN_SETTLE, PHX_IN_START,
  PHX_IN_IO,     /* one read or write of a transfer */
  PHX_IN_LOG,    /* writing a line */
  PHX_IN_ASYNC,  /* telling how many async batches there are */
  PHX_IN_TAKE,   /* growing the table of live registrations */
  PHX_IN_ENGINE, /* making the engine */
  PHX_INS
};

#ifdef PHX_INJECT
/* How many of the next passes of each place panic; accessed atomically. */
int32_t *phx_inject_left(void);
#endif

#endif
