package engine

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Batch is a group of transfers in one direction. The owner sets Ops, Kind, Done
// and Stager after Begin at the earliest and before Run or Submit at the latest, and
// leaves them alone until the batch is over. The zero value is ready for
// Begin; a batch that is over may begin again, and costs no allocation. It
// must not be copied.
type Batch struct {
	Ops  []Op // at most 1<<32 - 1
	Kind Kind

	// Done, if set, is called once for each submitted batch, by the thread
	// that ends it: all I/O is done, the batch still counts as in flight and
	// Wait has not returned. It holds up the queue, so it must be short, and
	// it must not call the engine.
	Done func(*Batch)

	// Stager, if set, lends the memory through which ops with a Group go
	// (stage.go).
	Stager Stager

	order Order // set by Begin

	// state is one of the constants below. Written under queue.mu, but for
	// the sync fast path, where no other thread knows the batch.
	state atomic.Uint32

	// cursor is the next unclaimed unit (claim.go). Written by: any
	// participant.
	cursor  atomic.Uint64
	quantum int64 // estimated ns per claim; set before the batch is offered, as the next two
	easing  int64 // the same, for each op that is left: the end of a batch is claimed in smaller parts
	single  bool  // it is one unit

	// Protected by queue.mu.
	ready        bool   // submitted: an async batch may start
	offered      bool   // linked in pool's list of batches that want help
	drain        bool   // the owner sleeps until every participant has left
	want         int32  // participants still to be woken
	joined       int32  // participants inside, the owner of a sync batch not counted
	qPrev, qNext *Batch // queue's list of tickets that have not started
	hPrev, hNext *Batch // pool's list of batches that want help
	park         parker // the thread in Run or Wait sleeps here

	files batchFiles // what participants know of the files
}

// States of a batch.
const (
	over    = iota // the owner's: never begun, or ended
	queued         // begun; an earlier ticket is in the way, or not submitted yet
	started        // a sync batch whose turn has come (async ones go from queued to done)
	done           // a submitted batch whose I/O and Done callback are finished
)

func (b *Batch) reset(o Order) {
	b.order = o
	b.cursor.Store(0)
	b.ready, b.offered, b.drain = false, false, false
	b.want, b.joined = 0, 0
}

// load is how much work a batch is, by estimate.
type load struct {
	ns    int64 // one thread's time
	units int64 // pieces that different threads may take
}

// The estimate of performance.md: 1.5 µs for each transfer and 8 GB/s.
const (
	opNs       = 1500
	bytesPerNs = 8
	manyNs     = 1 << 50 // stop adding up here; far beyond every threshold
)

func costNs(lenBytes uint64) int64 { return opNs + int64(lenBytes/bytesPerNs) }

// prepare cuts the ops into slices and merges them into runs, before any claim,
// and adds up the work.
func (b *Batch) prepare() load {
	var l load
	var files mergeFiles
	b.files.forget()
	for i := 0; i < len(b.Ops); {
		op := &b.Ops[i]
		op.slices = 1
		slices, ops, n := int64(1), 1, op.Len
		above, cut := n, int32(0)
		if n > StageBytes { // else neither division is needed
			above, cut = b.cut(op)
		}
		switch {
		case n > above && !b.whole(op):
			op.slices = cut
			op.Result = int64(n) // lowered by each slice that stops early
			slices = int64(cut)
		case b.Stager == nil && n < mergedBytes && i+1 < len(b.Ops) && op.precedes(&b.Ops[i+1]):
			ops, n = b.merge(i, &files)
		}
		l.units += slices
		if l.ns < manyNs {
			l.ns += costNs(min(n, 1<<40)) + opNs*(slices-1)
		}
		i += ops
	}
	b.single = l.units == 1
	return l
}

// whole reports whether one thread must do op in one piece: a write to an
// O_APPEND file, where the kernel ignores the offset (pwrite(2), BUGS) and the
// order of the slices is the order of the data; and a length that is no multiple
// of 4096 under O_DIRECT, which the kernel refuses, but not the slices before it.
func (b *Batch) whole(op *Op) bool {
	misaligned := op.Len%4096 != 0
	if b.Kind != Write && !misaligned {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(op.FD), unix.F_GETFL, 0)
	if err != nil {
		return false
	}
	return b.Kind == Write && flags&unix.O_APPEND != 0 || misaligned && flags&unix.O_DIRECT != 0
}
