package engine

import (
	"syscall"

	"libphoenix/internal/uring"
)

// HostAddr is an address in this process's memory, in bytes. It is an integer
// on purpose: the memory belongs to the caller (or to a device mapping) and
// the garbage collector must not see it as a pointer.
type HostAddr uintptr

// Kind says which way a batch moves data.
type Kind uint8

const (
	Read  Kind = iota // file to memory
	Write             // memory to file
)

// Order says how a batch is ordered against the others (docs/abi.md, "Order").
type Order uint8

const (
	// Sync batches whose calls overlap may run side by side.
	Sync Order = iota
	// Async batches start after every earlier ticket has completed, and
	// nothing with a later ticket starts before they complete.
	Async
	// Unordered batches are run like sync ones, at once: they take no part in
	// the order (phxfs_read and phxfs_write of staged memory).
	Unordered
)

// Op is one transfer between a file and host memory.
type Op struct {
	Addr HostAddr // first byte of memory
	Len  uint64   // bytes, at most 1<<63-1
	Off  int64    // file offset in bytes, >= 0; Off+Len does not overflow

	// Result is bytes moved (the contiguous prefix) or -errno.
	// Written by: the engine, valid once the batch is complete.
	Result int64

	FD     int32
	Index  uint32 // the owner's; the engine never reads it
	Group  uint32 // only ops of equal Group are merged into one transfer; 0 = plain process memory
	slices int32  // engine's: how many slices the op is cut into; below 0: it is the first of so many ops that are moved as one (merge.go); set before its first claim
}

// Engine carries out batches. All methods may be called from any thread.
//
// The life of a batch: Begin takes its ticket, then exactly one of
// Abandon, Run (Sync and Unordered batches) or Submit (Async batches) follows; a submitted
// batch is later passed to Wait exactly once, after which the owner may reuse
// it. An error from Submit also ends the batch.
type Engine interface {
	// Name is "sync" or "io_uring".
	Name() string

	// Begin takes the ticket of b, which fixes its place in the order. It
	// never blocks. b.Ops need not be filled in yet.
	Begin(b *Batch, o Order)

	// Abandon retires the ticket of a begun batch without any I/O.
	Abandon(b *Batch)

	// Run carries out a begun Sync or Unordered batch: it waits for the batch's turn, does
	// the I/O and returns when every op has its Result and the kernel no
	// longer touches the memory of any of them.
	Run(b *Batch)

	// Submit queues a begun Async batch with at least one op. It never waits
	// for I/O. EBUSY: MaxAsync batches already have I/O queued or running.
	// ENOTSUP: the engine has no helper threads (it is closed). EINVAL: no ops. After an error the ticket
	// is retired, no I/O was or will be done and b.Done is not called.
	Submit(b *Batch) error

	// Wait returns when a submitted batch is complete and no thread of the
	// engine touches it any more. Meanwhile the caller works on the queue.
	Wait(b *Batch)

	// AsyncInFlight is the number of Async batches with I/O queued or running.
	AsyncInFlight() int

	// Close waits for submitted batches and ends the helper threads. No other
	// call may follow.
	Close()
}

// MaxAsync is how many async batches may have I/O queued or running
// (docs/abi.md: batch_submit fails with EBUSY beyond it).
const MaxAsync = 16

// IO is the system-call layer under an engine; tests put a faulty one there.
// Pread and Pwrite move at most n bytes once (no retry, no loop) and return
// the kernel's answer.
type IO interface {
	Pread(fd int32, addr HostAddr, n uint64, off int64) (int64, syscall.Errno)
	Pwrite(fd int32, addr HostAddr, n uint64, off int64) (int64, syscall.Errno)
}

// Config is what an engine is built from.
type Config struct {
	IO      IO                        // nil: the kernel
	Rings   uring.Kernel              // io_uring's system calls; nil: the kernel's
	AIO     AIO                       // Linux AIO's; nil: the kernel's
	RingFDs *RingFDs                  // filled with the descriptors that rings hold; nil: nobody wants to know
	Helpers int                       // helper threads, 1..64; 0: usable cores - 1, at least 1, at most 4 or, for staged reads, 10
	Depth   int                       // transfers that one ring keeps going, 8..4096 (PHXFS_QUEUE_DEPTH); 0: 256
	Notice  func(reason string)       // told once about each fallback or contained panic; may be called under the queue's lock, must not block or call the engine; nil: dropped
	OnAsync func(queuedOrRunning int) // told the new count when an async batch starts to count or stops; called under the queue's lock, must not block; nil: dropped
}
