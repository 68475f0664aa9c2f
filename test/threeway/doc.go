// Package threeway checks that three ways to carry out a batch give the same
// outcome: the io_uring engine, the sync engine, and a plain loop of pread or
// pwrite on the calling thread, which is the reference (runner_test.go).
//
// Random batches go to many kinds of file (the makers in targets_test.go).
// What must be equal, byte for byte and for every request:
//
//   - the result: bytes moved, or -errno;
//   - all memory, inside and outside the requested extents (arena_test.go). A
//     batch of writes leaves memory as it was;
//   - what a batch of writes leaves in the file. Requests of one batch have no
//     order, so extents of writes are disjoint, and for O_APPEND the pieces
//     may come in any order but each must be whole (append_test.go).
//
// Three things are unspecified. With O_DIRECT, how far a transfer gets whose
// memory is only partly mapped: a system call that waits may go on through the
// page cache where an asynchronous transfer stops at a block. With O_DIRECT,
// what a failed write leaves in its extent: of one with a misaligned length,
// ext4 writes what fits its first extent before it says EINVAL. And a request
// longer than one slice (8 MiB) that stops early has its result from the slice
// that stopped, but a later slice may have been done already: behind the
// result, in the extent, memory or file may have changed where a single pread
// or pwrite would not have come.
//
// A file that grows or shrinks during the batch has no single right answer;
// changing_test.go states what any pread could have given.
//
// The normal run makes some thousand random requests, PHX_THREEWAY=N makes at
// least N. PHX_REQUIRE (all, or a list of io_uring, odirect, mount, overlay,
// loop, fuse) turns a skip for want of one into a failure.
//
// Everything that needs root happens in a private mount namespace that belongs
// to one thread (namespace_test.go); its mounts, and loop devices, which are
// set to clear themselves, go with the process, however it ends.
package threeway
