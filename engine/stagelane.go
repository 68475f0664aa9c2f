package engine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// stageDepth is how many slots one thread uses at once: one that it fills or
// empties, the others on their way.
const stageDepth = 4

// stageWindow is what one thread has under way of a batch with a Stager.
type stageWindow struct {
	b     *Batch
	io    IO
	todo  claim // claimed, neither in pieces nor settled
	held  Slot  // of the unit that begin or long works on; nil: none
	first int   // of the ring pieces
	n     int   // pieces under way
	ring  [stageDepth]stagePiece
}

// stagePiece is a unit whose copy was started.
type stagePiece struct {
	op       *Op
	start, n uint64
	moved    int64 // a read's: what the file gave
	slot     Slot
}

// work claims units until none is left and does them.
func (w *stageWindow) work() {
	for {
		for w.todo.from < w.todo.to {
			w.begin(w.todo.from)
			// Only now: a panic above leaves the unit in todo, to be settled.
			w.todo.from = min(w.b.after(w.todo.from), w.todo.to)
		}
		var ok bool
		if w.todo, ok = w.b.claim(); !ok {
			break
		}
	}
	for w.n > 0 {
		w.finish()
	}
}

// begin brings the unit at at under way, or settles it.
func (w *stageWindow) begin(at uint64) {
	op := &w.b.Ops[at>>32]
	start, n := op.extent(uint32(at))
	switch {
	case op.stopped(start):
		return
	case n == 0 || !w.b.staged(op):
		op.settle(start, n, transfer(w.io, w.b.Kind, op.FD, op.Addr+HostAddr(start), n, op.Off+int64(start)))
		return
	}
	slot, errno := w.slot(op.Group)
	if errno != 0 {
		op.settle(start, n, -int64(errno))
		return
	}
	w.held = slot
	if n > StageBytes {
		r := w.long(op, start, n)
		w.release()
		op.settle(start, n, r)
		return
	}
	p := stagePiece{op: op, start: start, n: n, slot: slot}
	copied := n
	if w.b.Kind == Read {
		if p.moved = w.file(op, start, n); p.moved <= 0 {
			w.release()
			op.settle(start, n, p.moved)
			return
		}
		copied = uint64(p.moved)
	}
	w.held = nil
	slot.Start(w.b.Kind, op.Addr+HostAddr(start), copied)
	w.ring[(w.first+w.n)%stageDepth] = p
	w.n++
}

// slot lends a slot. It waits only with no piece under way: the copies of
// pieces come to an end, other threads' may depend on the slots of this one.
func (w *stageWindow) slot(group uint32) (Slot, syscall.Errno) {
	if w.n == stageDepth {
		w.finish()
	}
	for {
		s, errno := w.b.Stager.Slot(group, w.n == 0)
		if s != nil || errno != 0 {
			return s, errno
		}
		w.finish()
	}
}

// finish waits for the oldest piece and settles it.
func (w *stageWindow) finish() {
	p := &w.ring[w.first]
	r := p.moved
	if errno := p.slot.Wait(); errno != 0 {
		r = -int64(errno)
	} else if w.b.Kind == Write && !p.op.stopped(p.start) {
		r = transfer(w.io, Write, p.op.FD, p.slot.Place(p.op.Addr+HostAddr(p.start)), p.n, p.op.Off+int64(p.start))
	}
	op, start, n := p.op, p.start, p.n
	w.pop()
	op.settle(start, n, r) // of an op that has stopped before start it changes nothing
}

func (w *stageWindow) pop() {
	p := &w.ring[w.first]
	p.slot.Release()
	*p = stagePiece{}
	w.first = (w.first + 1) % stageDepth
	w.n--
}

func (w *stageWindow) release() {
	w.held.Release()
	w.held = nil
}

// file moves n bytes of op from start on between the file and the held slot.
func (w *stageWindow) file(op *Op, start, n uint64) int64 {
	return transfer(w.io, w.b.Kind, op.FD, w.held.Place(op.Addr+HostAddr(start)), n, op.Off+int64(start))
}

// long does a unit that does not fit a slot, which only ops in one piece have
// (Batch.whole), part after part. It returns the bytes moved or -errno.
func (w *stageWindow) long(op *Op, start, n uint64) int64 {
	if w.refused(op, start, n) {
		return -int64(syscall.EINVAL)
	}
	moved := uint64(0)
	for moved < n {
		part := min(n-moved, StageBytes)
		r := w.part(op, start+moved, part)
		if r < 0 && moved == 0 {
			return r
		}
		moved += uint64(max(r, 0))
		if r < int64(part) {
			break
		}
	}
	return int64(moved)
}

// part moves n bytes through the held slot and waits for the copy.
func (w *stageWindow) part(op *Op, start, n uint64) int64 {
	at := op.Addr + HostAddr(start)
	if w.b.Kind == Write {
		w.held.Start(Write, at, n)
		if errno := w.held.Wait(); errno != 0 {
			return -int64(errno)
		}
		return w.file(op, start, n)
	}
	r := w.file(op, start, n)
	if r > 0 {
		w.held.Start(Read, at, uint64(r))
		if errno := w.held.Wait(); errno != 0 {
			return -int64(errno)
		}
	}
	return r
}

// refused reports whether the kernel refuses, in one system call, a length that
// suits no O_DIRECT. The parts before the last would suit it, so the last one
// is tried first.
func (w *stageWindow) refused(op *Op, start, n uint64) bool {
	if n%4096 == 0 || n > chunkBytes {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(op.FD), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_DIRECT == 0 || flags&unix.O_APPEND != 0 {
		return false
	}
	last := n % StageBytes
	return w.part(op, start+n-last, last) == -int64(syscall.EINVAL)
}

// giveUp settles all that was claimed with -EIO, after a panic. The copies are
// waited for first: the slots are others' next.
func (w *stageWindow) giveUp() {
	const lost = -int64(syscall.EIO)
	if w.held != nil {
		w.held.Wait()
		w.release()
	}
	for w.n > 0 {
		p := w.ring[w.first]
		p.slot.Wait()
		w.pop()
		p.op.settle(p.start, p.n, lost)
	}
	w.b.fail(w.todo)
	w.todo = claim{}
}
