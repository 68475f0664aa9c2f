/* exit.h - normal exit: exit(), return from main, Python's exit. */
#ifndef PHX_EXIT_H
#define PHX_EXIT_H

/* Registers the exit handler (atexit). Called when Go starts, and once more
 * before the first MAP with a vendor library in the process, so that it runs before the handler of a vendor library
 * that was initialised in between; running it twice is harmless. Later calls do
 * nothing, in forked children too. Any thread. */
void phx_exit_arm(void);

#endif
