/* threads.h - threads that can be refused. */
#ifndef PHX_THREADS_H
#define PHX_THREADS_H

/* Makes n threads at once and ends them: 0, or EAGAIN if a limit (pids.max,
 * RLIMIT_NPROC) is in the way. Not more than PHX_ROOM_MAX. */
int phx_thread_room(int n);

#define PHX_ROOM_MAX 128

#endif
