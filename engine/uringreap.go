package engine

import "syscall"

// reap takes the completions that are there.
func (l *uringLane) reap() {
	for {
		id, res, ok := l.ring.Next()
		if !ok {
			return
		}
		if id < uint64(len(l.slots)) && l.slots[id].busy {
			l.completed(uint32(id), res)
		}
	}
}

// completed carries on with the unit in slot i, whose request gave res: bytes
// or -errno. The outcome is the one that a loop of pread or pwrite would have.
func (l *uringLane) completed(i uint32, res int32) {
	s := &l.slots[i]
	if res >= 0 {
		if !l.proven {
			l.proven, l.vectors = true, s.vector
		}
		op, _, n := l.b.unit(s.at)
		s.moved += uint64(res)
		if res == 0 || s.moved >= n || op.slices < 0 { // the end of the file, or of the unit; or the rest is done alone
			l.settle(i, int64(s.moved))
			return
		}
		l.reissue(i)
		return
	}
	switch errno := syscall.Errno(-res); errno {
	case syscall.EINTR:
		l.reissue(i)
	case syscall.EOPNOTSUPP, syscall.EINVAL:
		// Before 5.6 the opcode itself may be unknown.
		if !s.vector && (l.vectors || !l.proven) {
			s.vector = true
			l.reissue(i)
			return
		}
		l.finish(i)
	default:
		if doubtful(errno) {
			l.finish(i)
			return
		}
		l.settle(i, prefix(s.moved, -int64(errno)))
	}
}

// doubtful reports whether the errno of an asynchronous transfer may be one
// that pread would not have given: a look at the memory before the one at the
// fd, a non-blocking file, no memory for the request, a cancellation, a
// restriction.
func doubtful(errno syscall.Errno) bool {
	switch errno {
	case syscall.EFAULT, syscall.EAGAIN, syscall.EBUSY, syscall.ENOMEM, syscall.ECANCELED, syscall.ENOSYS, syscall.EPERM, syscall.EACCES:
		return true
	}
	return false
}

// prefix is the result of a unit that moved so many bytes and then got r.
func prefix(moved uint64, r int64) int64 {
	if r < 0 && moved > 0 {
		return int64(moved)
	}
	return int64(moved) + r
}

// reissue puts slot i up to be queued again; without a ring it is finished.
func (l *uringLane) reissue(i uint32) {
	if l.ring == nil {
		l.finish(i)
		return
	}
	l.slots[i].next = l.again
	l.again = i
}

// finish ends the unit in slot i with plain system calls, whose answer counts.
func (l *uringLane) finish(i uint32) {
	s := &l.slots[i]
	op, start, n := l.b.unit(s.at)
	if op.slices < 0 {
		l.settle(i, int64(s.moved))
		return
	}
	l.settle(i, prefix(s.moved, l.plainly(op, start+s.moved, n-s.moved)))
}

// settle records the result of the unit in slot i and frees the slot.
func (l *uringLane) settle(i uint32, r int64) {
	l.b.settle(l.slots[i].at, r, l.alone)
	l.release(i)
}

func (l *uringLane) release(i uint32) {
	s := &l.slots[i]
	s.busy, s.next = false, l.free
	l.free = i
	l.used--
}
