/* start.h - lazy start of the Go runtime. */
#ifndef PHX_START_H
#define PHX_START_H

struct phx_state;

/* Starts Go in this process, once; callers that come meanwhile wait. Returns 0,
 * ENOMEM or EAGAIN (resources are missing; nothing was touched, a later call
 * may succeed), or ENOSYS (the process was forked from one in which Go had
 * started: its memory cannot be used for another start). */
int phx_start(struct phx_state *s);

/* Why phx_start gave this errno, for the log. */
const char *phx_start_reason(int err);

#endif
