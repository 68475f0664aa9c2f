package uring

import (
	"sync/atomic"
	"syscall"
)

// Ring is one submission and one completion queue. Its owner is one thread at
// a time; handing it on takes a synchronising operation between the two.
type Ring struct {
	// Set by Open, then read-only.
	kernel     Kernel
	fd         int // none: given back, the ring is known by its index
	enterFD    int // fd, or the registered index
	registered bool
	flags      uint32 // of the setup
	enterFlags uint32 // of each Enter
	maps       [3][]byte
	mask       uint32 // entries - 1, of the submission queue
	cqMask     uint32
	sqes       []SQE
	cqes       []CQE
	iovecs     []iovec // as many as sqes; of the vectored request with that id

	// Shared with the kernel, in its mapping. Read and written atomically:
	// storing sqTail publishes the entries before it, loading cqTail makes
	// those before it readable, storing cqHead gives them back.
	sqHead, sqTail *uint32
	cqHead, cqTail *uint32

	// The owner's.
	tail uint32 // of the submission queue, ahead of *sqTail by what is unpublished
	head uint32 // of the completion queue, equal to *cqHead outside Next
}

const none = -1

// Entries is how many requests may be pending and in flight together.
func (r *Ring) Entries() int { return len(r.sqes) }

// Flags are the setup flags that the kernel accepted.
func (r *Ring) Flags() uint32 { return r.flags }

// HoldsFD reports whether the ring takes up a file descriptor.
func (r *Ring) HoldsFD() bool { return r.fd != none }

// Pending is how many queued requests the kernel has not taken yet.
func (r *Ring) Pending() uint32 { return r.tail - atomic.LoadUint32(r.sqHead) }

// InFlight is how many requests the kernel has taken and Next has not reported.
// Both queues count from 0, one completion for each request.
func (r *Ring) InFlight() uint32 { return atomic.LoadUint32(r.sqHead) - r.head }

// Queue prepares a request: op moves n bytes between addr and the offset off
// of fd. id comes back with its completion. The caller sees to it that Entries
// is not exceeded.
func (r *Ring) Queue(op Opcode, fd int32, addr uintptr, n uint32, off, id uint64) {
	e := &r.sqes[r.tail&r.mask]
	e.Reset()
	e.PrepOperation(uint8(op), fd, uint64(addr), n, off)
	e.SetUserData(id)
	r.tail++
}

// QueueVector is Queue for Readv and Writev; id must be less than Entries, and
// of no other vectored request pending or in flight.
func (r *Ring) QueueVector(op Opcode, fd int32, addr uintptr, n uint32, off, id uint64) {
	v := &r.iovecs[id]
	*v = iovec{addr, uintptr(n)}
	r.Queue(op, fd, v.address(), 1, off, id)
}

// QueueCancel prepares the cancellation of the request with the id target.
func (r *Ring) QueueCancel(target, id uint64) {
	r.Queue(AsyncCancel, -1, uintptr(target), 0, 0, id)
}

// Enter submits what is pending and waits until at least minComplete
// completions can be taken. The kernel may take only a part of what is pending
// and then does not wait (Pending tells); an errno other than EINTR, EAGAIN
// and EBUSY means that the ring is of no use any more.
func (r *Ring) Enter(minComplete uint32) syscall.Errno {
	atomic.StoreUint32(r.sqTail, r.tail)
	return r.enter(r.Pending(), minComplete)
}

// Await is Enter without submitting.
func (r *Ring) Await(minComplete uint32) syscall.Errno { return r.enter(0, minComplete) }

func (r *Ring) enter(submit, minComplete uint32) syscall.Errno {
	flags := r.enterFlags
	if minComplete > 0 {
		flags |= EnterGetEvents
	}
	_, errno := r.kernel.Enter(r.enterFD, submit, minComplete, flags)
	return errno
}

// Withdraw takes back all pending requests. The kernel looks at the tail only
// inside Enter (there is no polling thread), so it has not seen them.
func (r *Ring) Withdraw() {
	r.tail = atomic.LoadUint32(r.sqHead)
	atomic.StoreUint32(r.sqTail, r.tail)
}

// Ready is how many completions Next will give without another Enter.
func (r *Ring) Ready() uint32 { return atomic.LoadUint32(r.cqTail) - r.head }

// Next takes one completion: the request's id and its result, bytes or -errno.
func (r *Ring) Next() (id uint64, res int32, ok bool) {
	if r.head == atomic.LoadUint32(r.cqTail) {
		return 0, 0, false
	}
	e := &r.cqes[r.head&r.cqMask]
	id, res = e.UserData(), e.Result()
	r.head++
	atomic.StoreUint32(r.cqHead, r.head)
	return id, res, true
}
