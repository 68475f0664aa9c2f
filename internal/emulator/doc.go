// Package emulator plays the phxfs kernel module for programs that know
// nothing of it. Run starts a program under a seccomp filter whose
// notifications it answers: opening a device node yields a descriptor, mmap of
// that descriptor yields memory of its own, the MAP and UNMAP requests are
// judged by the rules of docs/abi.md §5, and what would harm the real module
// is reported. No root, no user namespace, no module; docs/emulator.md is the
// user's view.
//
// How a registration is made. A device descriptor is an empty memfd that the
// supervisor recognises by its inode. When a thread calls mmap on it, the
// supervisor puts a fresh, empty memfd at the same descriptor number and lets
// the call go on: the mapping has pages of its own, and none of them can be
// touched. MAP gives the memfd its length. Between the replacement and the
// kernel's look at the descriptor no second mmap of the process may replace it
// again; settle.go waits for that.
//
// Whether a request still waits is decided by the kernel: a MAP or UNMAP
// changes the ledger only if its answer was delivered (reply), so a thread that
// dies or is interrupted meanwhile has not registered anything.
//
// Lifetimes. The listener, the nodes and the sysfs tree live as long as Run.
// A region's memfd is the supervisor's from the mmap until MAP succeeded or
// the process ended; from MAP on the program's mapping alone keeps the memory.
// A region's record stays until its address is used again, so that a second
// UNMAP is recognised. A process is watched through a pidfd from its first
// mmap until it ends. Goroutines: receive, one for each request being
// answered, one watcher for each watched process, reap, the signal forwarder;
// Run returns when all have ended.
//
// Locks, outer first:
//
//	process.mmapMu    one replacement at a time in a process; held while settling
//	supervisor.mu     ledger, processes, offers; never held while waiting
//	reporter.mu, injector.mu
//
// Run owns the process it is called in: it becomes a child subreaper and
// collects every child. This is no sandbox: a program that races its own
// arguments against the supervisor only fools itself.
package emulator
