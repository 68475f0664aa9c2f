/* log.h - where log lines go. Go formats the lines of calls (cabi/log.go), the
 * shim the few that must work without Go; both end here. */
#ifndef PHX_LOG_H
#define PHX_LOG_H

#include <stddef.h>

struct phx_state;

/* Writes one line "libphoenix[PID] LEVEL text" if PHXFS_LOG asks for this
 * level, with a single write(2). The log file is opened for each line: no
 * descriptor of ours is there for the host to close and reuse. Keeps errno. */
void phx_log_line(struct phx_state *s, int level, const char *text, size_t len);

void phx_log(struct phx_state *s, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "EINVAL" for EINVAL. Knows what the shim itself can run into (glibc has such
 * a table since 2.32 only); anything else is "other". */
const char *phx_errno_name(int e);

/* The level that PHXFS_LOG asks for (PHX_LOG_*). */
int phx_log_level(struct phx_state *s);

#endif
