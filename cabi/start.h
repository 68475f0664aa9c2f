/* start.h - lazy start of the Go runtime. */
#ifndef PHX_START_H
#define PHX_START_H

struct phx_state;

/* Starts Go in this process, once; callers that come meanwhile wait. Returns 0,
 * ENOMEM or EAGAIN (resources are missing; nothing was touched, a later call
 * may succeed), or ENOSYS (the process was forked from one in which Go had
 * started: its memory cannot be used for another start). */
int phx_start(struct phx_state *s);

/* How many entries lazy.ld took out of .init_array: 1, Go's. */
int phx_start_entries(void);

/* Why phx_start gave this errno, for the log. */
const char *phx_start_reason(struct phx_state *s, int err);

#endif
