package engine

import "syscall"

// submit hands the queue to the kernel, as much as it takes.
func (l *aioLane) submit() {
	var signals stall
	for len(l.queue) > 0 {
		n, errno := l.t.aio.Submit(l.context, l.queue)
		switch {
		case errno == 0 && n > 0:
			for _, q := range l.queue[:n] {
				l.slots[q.ID].state = slotFlies
			}
			l.flying += n
			l.queue = append(l.queue[:0], l.queue[n:]...)
			signals.end()
		case errno == syscall.EAGAIN && l.flying > 0:
			return // there is room when one completes
		case errno == syscall.EINTR && !signals.hopeless():
			pause(signals.calls)
		case errno == 0 || errno == syscall.EINTR || errno == syscall.EAGAIN || errno == syscall.EPERM || errno == syscall.ENOSYS:
			l.t.deny("io_submit", errno)
			for len(l.queue) > 0 {
				l.refused()
			}
		default: // it is about the first one
			l.refused()
		}
	}
}

// refused does the first request of the queue with plain system calls.
func (l *aioLane) refused() {
	i := uint32(l.queue[0].ID)
	l.queue = append(l.queue[:0], l.queue[1:]...)
	l.finish(i, 0)
}

// reap waits until least of the flying are answered and ends all that are.
func (l *aioLane) reap(least int) {
	l.await(least)
	for i := range l.slots {
		if l.slots[i].state == slotAnswered {
			l.completed(uint32(i))
		}
	}
}

// await takes the answers of the kernel, least or more of them. If it may not
// ask any more, it looks at the context's memory until nothing flies: however
// long that takes, the memory of the caller is not ours to give back before.
// So it does between signals, which can come for ever.
func (l *aioLane) await(least int) {
	var signals stall
	for least = l.flying - least; l.flying > least; {
		n, errno := l.t.aio.Await(l.context, l.flying-least, l.events[:])
		if errno == syscall.EINTR {
			if n, errno = l.t.aio.Take(l.context, l.events[:]), 0; n == 0 && signals.lasts() {
				pause(1)
			}
		}
		if errno == 0 {
			l.answered(n)
			continue
		}
		l.t.deny("io_getevents", errno)
		least = 0
		for looked := 0; l.flying > 0; looked++ {
			n := l.t.aio.Take(l.context, l.events[:])
			l.answered(n)
			if n == 0 {
				pause(looked)
			}
		}
	}
}

// answered notes the first n events.
func (l *aioLane) answered(n int) {
	for i := range l.events[:n] {
		e := &l.events[i]
		s := &l.slots[e.ID]
		s.state, s.result = slotAnswered, e.Result
	}
	l.flying -= n
}

// breakDown ends the lane's part in the batch after a panic of our own code
// between claim and settlement. First of all the kernel must be done with the
// caller's memory. Of what it has answered the bytes count; the rest gets -EIO,
// and no call is made for it any more.
func (l *aioLane) breakDown() {
	for !guard(l.t.plain.notice, "while direct transfers end", func() { l.await(l.flying) }) {
	}
	for i := range l.slots {
		s := &l.slots[i]
		if s.state == slotFree {
			continue
		}
		if s.state != slotAnswered || s.result < 0 {
			s.result = -int64(syscall.EIO)
		}
		l.b.settle(s.at, s.result, nil)
		l.release(uint32(i))
	}
	l.b.fail(l.todo)
	l.todo = claim{}
	l.queue = l.queue[:0]
}
