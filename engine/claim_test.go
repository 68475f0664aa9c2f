package engine

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

func TestSlicesCoverEveryLength(t *testing.T) {
	for _, n := range []uint64{0, 1, sliceBytes - 1, sliceBytes, sliceBytes + 1, 100 << 20, 1<<54 - 1, 1 << 54, 1 << 60, math.MaxInt64} {
		op := Op{Len: n, slices: 1}
		if n > sliceBytes {
			op.slices = slicesOf(n)
		}
		start, length := op.extent(uint32(op.slices - 1))
		if got := start + length; got != n {
			t.Errorf("%d bytes in %d slices: the last one ends at %d", n, op.slices, got)
		}
		if n > 0 && length == 0 {
			t.Errorf("%d bytes in %d slices: the last one is empty", n, op.slices)
		}
	}
}

// A number of slices that did not fit would look like a run of ops.
func TestOpsOfEveryLengthAreWalkedSliceBySlice(t *testing.T) {
	for _, n := range []uint64{sliceBytes + 1, 1<<51 + 1, 1<<52 - 1, 1 << 54, 1<<54 - 1, 1<<54 - 1<<23, 1<<54 - 1<<23 - 1, 1<<54 + 1, 1<<55 - 1, math.MaxInt64} {
		for _, staged := range []bool{false, true} {
			b := &Batch{Ops: []Op{{Len: n, FD: -1, Group: 7}, {Len: 1}}}
			if staged {
				b.Stager = newFakeStager(t, 1)
			}
			if l := b.prepare(); b.Ops[0].slices < 2 || l.units != int64(b.Ops[0].slices)+1 {
				t.Fatalf("%d bytes, staged %t: %d slices, %d units", n, staged, b.Ops[0].slices, l.units)
			}
			last := uint64(b.Ops[0].slices) - 1
			if got := b.next(last - 1); got != last {
				t.Errorf("%d bytes, staged %t: after slice %d comes %#x", n, staged, last-1, got)
			}
			if got := b.next(last); got != 1<<32 {
				t.Errorf("%d bytes, staged %t: after the last slice comes %#x", n, staged, got)
			}
			if _, start, length := b.unit(last); start+length != n || length == 0 {
				t.Errorf("%d bytes, staged %t: the last slice is %d bytes at %d", n, staged, length, start)
			}
		}
	}
}

// Whatever the claim sizes, each unit is claimed exactly once.
func TestEveryUnitIsClaimedOnce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		b := &Batch{Ops: make([]Op, rnd.IntN(200))}
		for i := range b.Ops {
			b.Ops[i].Len = rnd.Uint64N(4 * sliceBytes)
		}
		l := b.prepare()
		b.quantum = 1 + rnd.Int64N(3*l.ns+1)
		var units atomic.Int64
		var seen sync.Map
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for c, ok := b.claim(); ok; c, ok = b.claim() {
					for at := c.from; at < c.to; at = b.next(at) {
						units.Add(1)
						if _, twice := seen.LoadOrStore(at, true); twice {
							t.Errorf("unit %#x was claimed twice", at)
						}
					}
				}
			})
		}
		group.Wait()
		if units.Load() != l.units || !b.exhausted() {
			t.Errorf("%d units claimed, want %d", units.Load(), l.units)
		}
	}
}

func TestClaimPassesOverTheRestOfAStoppedOp(t *testing.T) {
	b := &Batch{Ops: []Op{{Len: 1 << 62}, {Len: 1}}, quantum: 1}
	b.prepare()
	b.claim()
	b.Ops[0].settle(0, sliceBytes, 10)
	c, ok := b.claim()
	if !ok || c.to != b.end() {
		t.Errorf("claim %#x..%#x, want one to the end %#x", c.from, c.to, b.end())
	}
	if b.Ops[0].Result != 10 {
		t.Errorf("result %d, want 10", b.Ops[0].Result)
	}
}

// A length of 1<<62 makes 1<<31 slices; the first one meets the end of the file,
// and nobody walks over the others.
func TestAnAbsurdLengthCostsNoMoreThanItsFirstSlices(t *testing.T) {
	b := &Batch{Ops: []Op{{Len: 1 << 62}, {Len: 10}}}
	b.prepare()
	b.Ops[0].settle(0, sliceSize(1<<62), 100)
	steps := 0
	for at := uint64(0); at < b.end(); at = b.after(at) {
		steps++
	}
	if steps != 2 || b.Ops[0].Result != 100 {
		t.Errorf("got %d steps and result %d, want 2 and 100", steps, b.Ops[0].Result)
	}
}

// The last claims are small, so that no participant is left with much to do
// when the others find nothing; but not so small that each costs a system call.
func TestClaimsShrinkTowardsTheEnd(t *testing.T) {
	for _, size := range []uint64{4 << 10, 64 << 10} {
		for _, want := range []int32{1, 4} {
			m := newMachine(Config{Helpers: 4})
			m.lanes = newUringTransport(Config{}, m)
			b := &Batch{Ops: make([]Op, 1024)}
			for i := range b.Ops {
				b.Ops[i].Len, b.Ops[i].Off = size, int64(len(b.Ops)-i)*int64(size)
			}
			m.share(b, b.prepare(), want)
			before, claims, total := int64(1)<<62, 0, int64(0)
			for c, ok := b.claim(); ok; c, ok = b.claim() {
				ns := int64(c.to-c.from) >> 32 * costNs(size)
				least := min(easedNs, b.quantum)
				if last := c.to == b.end(); ns > before || ns > b.quantum+costNs(size) || ns < least && !last || last && ns > least+costNs(size) {
					t.Errorf("%d bytes, %d helpers: claim %d is of %d ns after one of %d, last %v", size, want, claims, ns, before, last)
				}
				before, claims, total = ns, claims+1, total+ns
			}
			if most := total/b.quantum + 12*int64(want+1); int64(claims) > most {
				t.Errorf("%d bytes, %d helpers: %d claims, want at most %d", size, want, claims, most)
			}
		}
	}
}
