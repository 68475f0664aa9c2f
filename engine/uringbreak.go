package engine

import (
	"fmt"
	"syscall"
)

// guard contains a panic in part. True: there was none.
func (l *uringLane) guard(part func()) (whole bool) {
	return guard(l.t.notice, "during a transfer on a ring", part)
}

// breakDown ends the part of this lane's ring in the batch, and the ring. The
// ring gave errno, or (panicked) our own code failed between claim and
// settlement. First of all the kernel must be done with the caller's memory:
// closing a ring does not see to that.
func (l *uringLane) breakDown(errno syscall.Errno, panicked bool) {
	answers := make([]int32, len(l.slots))
	for i := range answers {
		answers[i] = unanswered
	}
	for !l.guard(func() { l.quiesce(answers) }) {
	}
	l.drop()
	l.again = noSlot
	if !panicked {
		l.why = fmt.Errorf("io_uring_enter: %w", errno)
		weight := int64(1)
		if passing(errno) || errno == syscall.EPROTO { // a stall
			weight = dearTrouble
		}
		l.t.trouble(l.why, weight)
		panicked = !l.guard(func() { l.finishAll(answers) })
	}
	if panicked {
		l.why = fmt.Errorf("panic: %w", syscall.EIO)
		l.giveUp(answers)
	}
}

// unanswered marks a slot whose request did not complete: the kernel never took
// it, or it was between two requests.
const unanswered = -1 << 31

// cancelID is the id of a cancellation's own completion.
const cancelID = 1 << 32

// quiesce returns when nothing is in flight on the ring, and leaves the results
// of what was in answers. However the ring fails meanwhile it does not give up:
// the memory is not ours to give back before. It may be called again after a
// panic.
func (l *uringLane) quiesce(answers []int32) {
	r := l.ring
	r.Withdraw()
	// What waits in the kernel's own queues need not be started any more.
	// There is room: at most Entries in flight, as many places, and twice as
	// many for completions.
	for i := range l.slots {
		if l.slots[i].busy && answers[i] == unanswered && r.Pending() < uint32(len(l.slots)) {
			r.QueueCancel(uint64(i), cancelID)
		}
	}
	if r.InFlight() > 0 {
		_ = r.Enter(0)
	}
	r.Withdraw()
	for idle := 0; ; {
		for {
			id, res, ok := r.Next()
			if !ok {
				break
			}
			if id < uint64(len(answers)) {
				answers[id] = res
			}
		}
		if r.InFlight() == 0 {
			return
		}
		if _ = r.Await(1); r.Ready() == 0 { // refused, or a signal
			idle++
			pause(idle)
		}
	}
}

// finishAll settles all that the lane had claimed, now that the ring is gone.
func (l *uringLane) finishAll(answers []int32) {
	for i := range l.slots {
		switch {
		case !l.slots[i].busy:
		case answers[i] == unanswered:
			l.finish(uint32(i))
		default:
			res := answers[i]
			answers[i] = unanswered // counted from here on
			l.completed(uint32(i), res)
		}
	}
	for l.todo.from < l.todo.to {
		rest := l.todo
		l.todo.from = l.todo.to
		l.t.plain.perform(l.b, rest) // contains its own panics
	}
}

// giveUp settles it with what is known and makes no call any more: whole units
// count, of others the bytes that came, else -EIO.
func (l *uringLane) giveUp(answers []int32) {
	for i := range l.slots {
		s := &l.slots[i]
		if !s.busy {
			continue
		}
		r := int64(answers[i])
		if answers[i] == unanswered {
			r = -int64(syscall.EIO)
		}
		l.b.settle(s.at, prefix(s.moved, r), nil)
		l.release(uint32(i))
	}
	l.b.fail(l.todo)
	l.todo = claim{}
}
