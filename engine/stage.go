package engine

import (
	"math"
	"syscall"
)

// Staged ops are those whose memory no system call can reach: the ones with a
// Group in a batch that has a Stager. They go through memory lent by the
// Stager: file, slot, and from there by a copy that others carry out, so that
// the thread reads the next unit meanwhile (stagelane.go). The other ops of
// such a batch are done with plain system calls.

// StageBytes is what a Slot has room for, and the size above which a staged op
// is cut.
const StageBytes = 1 << 20

// Stager lends slots. Its methods may be called from any thread.
type Stager interface {
	// Slot lends a slot for ops of a group. If none is free it waits, or with
	// wait unset answers nil and 0. A thread that holds a slot must not wait.
	Slot(group uint32, wait bool) (Slot, syscall.Errno)
}

// Slot is host memory on the way to or from the memory of staged ops. One
// thread has it between Stager.Slot and Release.
type Slot interface {
	// Place is where in the slot a transfer with memory at at lies: as far
	// into a page as at is, so that O_DIRECT finds the alignment it would find
	// at at itself.
	Place(at HostAddr) HostAddr
	// Start begins to copy the n bytes at Place(at) to at (Read), or those at
	// at to Place(at) (Write). It does not wait and does not panic.
	Start(k Kind, at HostAddr, n uint64)
	// Wait returns when the copy last started is over, and its errno.
	Wait() syscall.Errno
	// Release gives the slot back. No copy is under way.
	Release()
}

// staged reports whether op goes through a slot.
func (b *Batch) staged(op *Op) bool { return b.Stager != nil && op.Group != 0 }

// cut is the length above which op is cut, and into how many slices.
func (b *Batch) cut(op *Op) (above uint64, slices int32) {
	if b.staged(op) && op.Len <= StageBytes*math.MaxInt32 {
		return StageBytes, int32((op.Len + StageBytes - 1) / StageBytes)
	}
	return sliceBytes, slicesOf(op.Len)
}

// sliceSize is the length of op's slices, of which there are several. A staged
// op has more of them than a plain one of its length.
func (op *Op) sliceSize() uint64 {
	size := sliceSize(op.Len)
	if uint64(op.slices) > (op.Len+size-1)/size {
		return StageBytes
	}
	return size
}

// work lets the calling thread take part in b, on its lane or, for a batch
// with a Stager or of one unit, without one.
func (m *machine) work(own lane, b *Batch) {
	switch {
	case b.Stager != nil:
		m.staging.run(b)
	case b.single: // one system call, as in Run
		m.solo.run(b)
	default:
		own.run(b)
	}
}

// runStaged carries out a sync batch with a Stager.
func (m *machine) runStaged(b *Batch) {
	l := b.prepare()
	want := m.worthwhile(b, l)
	m.share(b, l, want)
	if want == 0 {
		b.quantum = unbounded
		m.staging.run(b)
		return
	}
	m.offer(b, want)
	m.staging.run(b)
	m.drain(b)
}

// stageLane carries out batches with a Stager. It keeps no state, so all
// threads use one.
type stageLane struct {
	io     IO
	notice func(string)
}

// run implements lane.
func (l *stageLane) run(b *Batch) {
	w := stageWindow{b: b, io: l.io}
	for !guard(l.notice, "during a staged transfer", w.work) {
		w.giveUp()
	}
}
