package engine

import "syscall"

// aioLane carries out batches of O_DIRECT transfers with Linux AIO, which
// keeps many of them going in the disk where a loop of pread keeps one. Each
// aligned transfer is submitted once, whole; for what does not come back whole,
// and for every other file, pread and pwrite give the answer.
//
// The kernel writes the caller's memory until an event says that it has
// finished, so the lane never returns while anything flies (aiodrain.go).
type aioLane struct {
	t *syncTransport // set by its transport, then read-only

	// The owner's: whoever took the place (aiopool.go).
	context AIOContext // 0: none

	slots  [aioDepth]aioSlot
	asked  [aioDepth]AIORequest // of each slot
	queue  []*AIORequest        // prepared, not submitted
	room   [aioDepth]*AIORequest
	events [aioDepth]AIOEvent
	free   uint32 // first free slot
	used   int    // slots not free
	flying int    // of them in the kernel

	// Of the running batch.
	b    *Batch
	todo claim // claimed, not yet in a slot nor settled
}

// aioDepth is how many transfers of a context fly at once.
const aioDepth = 64

// aioSlot is a unit in the window. Its index is the id of its request.
type aioSlot struct {
	at     uint64 // the unit
	result int64  // once answered
	next   uint32 // free slot after this one
	state  uint8
}

// States of an aioSlot.
const (
	slotFree  = iota
	slotWaits // not submitted
	slotFlies
	slotAnswered // result is the kernel's
)

// open makes the lane's context.
func (l *aioLane) open() syscall.Errno {
	c, errno := l.t.aio.Setup(aioDepth)
	if errno != 0 {
		return errno
	}
	l.context, l.queue, l.free = c, l.room[:0], 0
	l.used, l.flying = 0, 0
	for i := range l.slots {
		l.slots[i] = aioSlot{next: uint32(i) + 1}
	}
	return 0
}

// run implements lane.
func (l *aioLane) run(b *Batch) {
	l.b, l.todo = b, claim{}
	if !guard(l.t.plain.notice, "during direct transfers", l.pump) {
		l.breakDown()
		l.t.plain.run(b)
	}
	l.b = nil
}

// pump does all that is left of the batch. Like a ring's (uringlane.go), the
// window is kept full while there is more to claim.
func (l *aioLane) pump() {
	for {
		more := l.fill()
		l.submit()
		switch {
		case l.flying == 0 && !more:
			return
		case l.flying == 0:
		case more:
			l.reap(min(aioDepth/4, l.flying))
		default:
			l.reap(l.flying)
		}
	}
}

// fill brings units under way until the window is full. It reports whether
// the batch has units left that are in no window.
func (l *aioLane) fill() (more bool) {
	for {
		for l.todo.from < l.todo.to {
			if l.free == aioDepth {
				return true
			}
			l.begin(l.todo.from)
			// Only now: a panic above leaves the unit in todo, to be settled.
			l.todo.from = min(l.b.after(l.todo.from), l.todo.to)
		}
		var ok bool
		if l.todo, ok = l.b.claim(); !ok {
			return false
		}
	}
}

// begin prepares the unit at at, or does it if AIO is not for it.
func (l *aioLane) begin(at uint64) {
	op, start, n := l.b.unit(at)
	if op.stopped(start) || !l.fits(op, start, n) {
		l.b.perform(l.t.plain.io, at)
		return
	}
	i := l.free
	s, q := &l.slots[i], &l.asked[i]
	l.free = s.next
	l.used++
	*s = aioSlot{at: at, state: slotWaits}
	*q = AIORequest{ID: uint64(i), Opcode: uint16(l.b.Kind), FD: op.FD, Addr: uint64(op.Addr) + start, Len: n, Off: op.Off + int64(start)}
	l.queue = append(l.queue, q)
}

// fits reports whether bytes start..start+n of op may be submitted.
func (l *aioLane) fits(op *Op, start, n uint64) bool {
	return n > 0 && n <= chunkBytes && (uint64(op.Addr)+start|n|uint64(op.Off)+start)%l.t.grain == 0 &&
		!l.t.denied.Load() && l.b.direct(op.FD, l.t.flags) && l.b.inARow(op.FD)
}

// completed ends the unit in slot i, which the kernel has answered.
func (l *aioLane) completed(i uint32) {
	s := &l.slots[i]
	_, _, n := l.b.unit(s.at)
	switch r := s.result; {
	case r == 0 || r == int64(n):
		l.settle(i, r)
	case r > 0:
		l.finish(i, uint64(r))
	case syscall.Errno(-r) == syscall.EINVAL || syscall.Errno(-r) == syscall.EINTR || doubtful(syscall.Errno(-r)):
		l.finish(i, 0)
	default:
		l.settle(i, r)
	}
}

// finish ends the unit in slot i, of which so many bytes have moved, with plain
// system calls, whose answer counts.
func (l *aioLane) finish(i uint32, moved uint64) {
	op, start, n := l.b.unit(l.slots[i].at)
	if op.slices < 0 {
		l.settle(i, int64(moved))
		return
	}
	start += moved
	r := transfer(l.t.plain.io, l.b.Kind, op.FD, op.Addr+HostAddr(start), n-moved, op.Off+int64(start))
	l.settle(i, prefix(moved, r))
}

// settle records the result of the unit in slot i and frees the slot.
func (l *aioLane) settle(i uint32, r int64) {
	l.b.settle(l.slots[i].at, r, func(op *Op) int64 { return l.b.alone(l.t.plain.io, op) })
	l.release(i)
}

func (l *aioLane) release(i uint32) {
	s := &l.slots[i]
	s.state, s.next = slotFree, l.free
	l.free = i
	l.used--
}
