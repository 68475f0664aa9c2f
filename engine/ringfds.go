package engine

import (
	"sync/atomic"
	"syscall"

	"libphoenix/internal/uring"
)

// RingFDs is the descriptors that rings hold, each plus one; 0 is a free place.
// The entries are read and written atomically. A forked child, in which no Go
// runs yet, goes by it to close what it has inherited.
type RingFDs [maxRingFDs]int32

// note enters fd. There is room: all rings together hold no more.
func (t *RingFDs) note(fd int) {
	for i := range t {
		if atomic.CompareAndSwapInt32(&t[i], 0, int32(fd)+1) {
			return
		}
	}
}

func (t *RingFDs) forget(fd int) {
	for i := range t {
		if atomic.CompareAndSwapInt32(&t[i], int32(fd)+1, 0) {
			return
		}
	}
}

// notingKernel keeps fds up to date. A fork between a system call and its note
// leaves a child with one descriptor too many, or with the number of one that
// is gone: whoever goes by the table looks what lies there.
type notingKernel struct {
	uring.Kernel
	fds *RingFDs
}

// Setup implements uring.Kernel.
func (k notingKernel) Setup(entries uint32, p *uring.Params) (int, syscall.Errno) {
	fd, errno := k.Kernel.Setup(entries, p)
	if errno == 0 {
		k.fds.note(fd)
	}
	return fd, errno
}

// Close implements uring.Kernel. The number is forgotten last: until then it
// may be somebody's else, never a ring that nobody knows.
func (k notingKernel) Close(fd int) {
	k.Kernel.Close(fd)
	k.fds.forget(fd)
}

// noting is k (nil: Linux), keeping fds up to date if there is such a table.
func noting(k uring.Kernel, fds *RingFDs) uring.Kernel {
	switch {
	case fds == nil:
		return k
	case k == nil:
		return notingKernel{uring.Linux{}, fds}
	default:
		return notingKernel{k, fds}
	}
}
