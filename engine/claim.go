package engine

import (
	"math"
	"sync/atomic"
)

// A unit is what one participant does alone: an op, one slice of a big op, or
// a run of ops that are moved as one (merge.go).
// Its place in the batch is a cursor: op index in the upper 32 bits, slice
// index in the lower ones, so that places compare like the units' order.

// sliceBytes is the size above which an op is cut.
const sliceBytes = 8 << 20

// claimNs bounds a claim, in estimated work, for every transport.
const claimNs = 200_000

// sliceSize is the slice length of an op of n bytes: sliceBytes, doubled until
// the number of slices fits Op.slices (only lengths of about 16 PiB and above
// need that).
func sliceSize(n uint64) uint64 {
	size := uint64(sliceBytes)
	for n/size >= math.MaxInt32 {
		size <<= 1
	}
	return size
}

func slicesOf(n uint64) int32 {
	size := sliceSize(n)
	return int32((n + size - 1) / size)
}

// easedNs is the least, in estimated work, that a claim is made smaller to at the
// end of a batch: less is not worth its system call.
const easedNs = 30_000

// claim is a run of units, from included, to excluded.
type claim struct{ from, to uint64 }

func (b *Batch) end() uint64     { return uint64(len(b.Ops)) << 32 }
func (b *Batch) exhausted() bool { return b.cursor.Load() >= b.end() }

// next is the place after at.
func (b *Batch) next(at uint64) uint64 {
	switch slices := b.Ops[at>>32].slices; {
	case slices < 0:
		return (at>>32 + uint64(-slices)) << 32
	case int64(uint32(at))+1 < int64(slices):
		return at + 1
	}
	return (at>>32 + 1) << 32
}

// after is next, but passes over what is left of an op that has stopped before
// there: a length can make two thousand million slices.
func (b *Batch) after(at uint64) uint64 {
	to := b.next(at)
	if uint32(to) != 0 {
		if start, _ := b.Ops[at>>32].extent(uint32(to)); b.Ops[at>>32].stopped(start) {
			return (at>>32 + 1) << 32
		}
	}
	return to
}

// extent gives the unit's part of its op: first byte and length.
func (op *Op) extent(slice uint32) (start, n uint64) {
	if op.slices == 1 {
		return 0, op.Len
	}
	size := op.sliceSize()
	start = uint64(slice) * size
	return start, min(size, op.Len-start)
}

// stopped reports whether a slice before start ended early, so that nothing
// from start on can count any more.
func (op *Op) stopped(start uint64) bool {
	return op.slices > 1 && atomic.LoadInt64(&op.Result) <= int64(start)
}

// settle records that the unit (start, n) of op moved r bytes, or failed with
// -errno. Each unit is settled once, by the participant that claimed it. The
// least place at which any slice stopped is the contiguous prefix; an errno
// counts only if it came at byte 0, where, being negative, it is least of all.
func (op *Op) settle(start, n uint64, r int64) {
	if op.slices == 1 {
		op.Result = r
		return
	}
	if r == int64(n) {
		return
	}
	stop := int64(start) + r
	if r < 0 {
		stop = int64(start)
		if start == 0 {
			stop = r
		}
	}
	for {
		old := atomic.LoadInt64(&op.Result)
		if old <= stop || atomic.CompareAndSwapInt64(&op.Result, old, stop) {
			return
		}
	}
}

// claim takes the next units of b: at least one, then more until their
// estimate reaches b.quantum, or less near the end. It passes over the rest of an op that a slice
// has stopped. False: none is left.
func (b *Batch) claim() (claim, bool) {
	for {
		from := b.cursor.Load()
		to := b.end()
		if from >= to {
			return claim{}, false
		}
		if b.quantum < unbounded {
			to = b.reach(from)
		}
		if b.cursor.CompareAndSwap(from, to) {
			return claim{from, to}, true
		}
	}
}

// unbounded, as a quantum, makes one claim of a whole batch.
const unbounded = 1 << 62

// reach is the place up to which one claim beginning at at may go.
func (b *Batch) reach(at uint64) uint64 {
	most := min(b.quantum, max(easedNs, b.easing*int64(uint64(len(b.Ops))-at>>32)))
	for ns, end := int64(0), b.end(); at < end && ns < most; {
		op, start, n := b.unit(at)
		if op.stopped(start) {
			at = (at>>32 + 1) << 32
			continue
		}
		ns += costNs(min(n, 1<<40))
		at = b.next(at)
	}
	return at
}
