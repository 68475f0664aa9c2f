package engine

import (
	"syscall"

	"libphoenix/internal/uring"
)

// fill queues what fits in the window, first what has to be issued again. It
// reports whether the batch has units left that are in no window.
func (l *uringLane) fill() (more bool) {
	for l.again != noSlot {
		i := l.again
		l.again = l.slots[i].next
		l.issue(i)
	}
	b := l.b
	for {
		if l.todo.from >= l.todo.to {
			// One claim for each submission: the others can take the rest
			// while the kernel is busy with this one.
			if l.ring.Pending() > 0 {
				return !b.exhausted()
			}
			var ok bool
			if l.todo, ok = b.claim(); !ok {
				return false
			}
		}
		for l.todo.from < l.todo.to {
			if l.free == noSlot {
				return true
			}
			l.begin(l.todo.from)
			// Only now: a panic above leaves the unit in todo, to be settled.
			l.todo.from = min(b.after(l.todo.from), l.todo.to)
		}
	}
}

// begin brings the unit at at under way, or settles it if there is nothing to
// do for a ring.
func (l *uringLane) begin(at uint64) {
	op, start, n := l.b.unit(at)
	switch {
	case op.stopped(start):
		return
	case n == 0:
		op.settle(start, n, 0)
		return
	}
	if op.FD != l.fd {
		l.fd, l.row = op.FD, l.b.inARow(op.FD)
	}
	if !l.row {
		if op.slices < 0 { // another file now than when it was merged
			l.b.settle(at, 0, l.alone)
			return
		}
		op.settle(start, n, l.plainly(op, start, n))
		return
	}
	i := l.free
	s := &l.slots[i]
	l.free = s.next
	l.used++
	*s = slot{at: at, busy: true}
	l.issue(i)
}

// issue queues what is left of the unit in slot i, at most one chunk of it.
func (l *uringLane) issue(i uint32) {
	s := &l.slots[i]
	op, start, n := l.b.unit(s.at)
	start += s.moved
	n = min(n-s.moved, chunkBytes)
	addr, off := uintptr(op.Addr)+uintptr(start), uint64(op.Off)+start
	if l.vectors || s.vector {
		s.vector = true
		l.ring.QueueVector(uring.Readv+uring.Opcode(l.b.Kind), op.FD, addr, uint32(n), off, uint64(i))
		return
	}
	l.ring.Queue(uring.Read+uring.Opcode(l.b.Kind), op.FD, addr, uint32(n), off, uint64(i))
}

// The opcodes of a Kind lie side by side.
const (
	_ = uint(uring.Readv + uring.Opcode(Write) - uring.Writev)
	_ = uint(uring.Writev - uring.Readv - uring.Opcode(Write))
	_ = uint(uring.Read + uring.Opcode(Write) - uring.Write)
	_ = uint(uring.Write - uring.Read - uring.Opcode(Write))
)

// plainly moves bytes start..start+n of op with plain system calls.
func (l *uringLane) plainly(op *Op, start, n uint64) int64 {
	return transfer(l.t.io, l.b.Kind, op.FD, op.Addr+HostAddr(start), n, op.Off+int64(start))
}

// alone moves op, of a run that did not come back whole.
func (l *uringLane) alone(op *Op) int64 { return l.b.alone(l.t.io, op) }

// enter submits and waits for want completions, as far as that goes in one
// call. An errno says that the ring failed.
func (l *uringLane) enter(want uint32) syscall.Errno {
	pending := l.ring.Pending()
	if pending == 0 && l.ring.Ready() >= want {
		return 0
	}
	errno := l.ring.Enter(want)
	switch {
	case errno != 0 && !passing(errno):
		return errno
	case l.ring.Ready() > 0 || l.ring.Pending() < pending:
		l.stall.end() // something came of it; the rest is for the next call
		return 0
	case l.ring.InFlight() > 0:
		return l.linger(errno)
	case !l.stall.hopeless():
		pause(l.stall.calls)
		return 0
	case errno == 0: // it says yes and does nothing
		return syscall.EPROTO
	}
	return errno
}

// linger is for a call that brought nothing forward while requests are in
// flight. EINTR is a signal, however many there are; EAGAIN (no memory for
// another request) and EBUSY (completions held back) pass when one completes.
// Whatever it is, the lane waits: nothing is gained by giving the ring up before
// the kernel has done with the memory.
func (l *uringLane) linger(errno syscall.Errno) syscall.Errno {
	if errno == syscall.EAGAIN || errno == syscall.EBUSY {
		if errno = l.ring.Await(1); errno != 0 && !passing(errno) {
			return errno
		}
	}
	if l.ring.Ready() > 0 {
		l.stall.end()
	} else if l.stall.lasts() {
		pause(1) // completions come without a call, too
	}
	return 0
}

// passing reports whether an errno of Enter is no fault of the ring.
func passing(errno syscall.Errno) bool {
	return errno == syscall.EINTR || errno == syscall.EAGAIN || errno == syscall.EBUSY
}
