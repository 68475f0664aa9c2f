// Command cabi is the C border of libphoenix; it builds into libphoenix.so
// (-buildmode=c-shared, see the Makefile).
//
// Two halves. The C half defines the public functions (api.c) and everything
// that must work where Go does not run: lazy start (start.c), who may call and
// who is inside (state.c), plain-memory reads and writes (single.c), the exit
// handler (exit.c) with the table of live registrations (live.c), the
// environment (env.c) and the place where log lines go (log.c). The Go half
// turns C types into Go types and back (exports_*.go), errors into C's values
// (values.go) and nothing else: what devices, registrations and batches are is
// core's business.
//
// Life of a process: loading runs nothing. The first call of any kind makes
// struct phx_state; the first that needs Go starts it, under a word that fork
// empties; the exit handler refuses new calls, waits for those inside and for
// accepted async batches, and releases what live pins owe the kernel. A child
// forked before the first use is a process like any other; in one forked later
// Go's memory is put back to what it was before the start (fork.c, image.c), and
// its first call starts a fresh Go.
//
// Locks: the C half has none that outlives a fork (atomics, and two futex words
// in memory that fork empties: one for callers that wait for the start, one for
// threads that take turns to enter Go for their first time, settle.c), so
// fork() can happen at any time. The Go half has the mutex
// of the pin table and the one of the log buffer; both are leaves.
package main
