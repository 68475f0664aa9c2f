package core

import (
	"math"
	"sync"
	"testing"
	"unsafe"

	"libphoenix/engine"
)

func TestSizeClassesHoldWhatTheyPromise(t *testing.T) {
	for _, n := range []int{smallOps + 1, 85, 86, 341, 342, 1365, 5461, 21845, 21846, 1 << 20, math.MaxInt32} {
		class, bytes := sizeOf(n)
		if bytes < uintptr(n)*opBytes || bytes%pageBytes != 0 {
			t.Errorf("%d ops in %d bytes", n, bytes)
		}
		if (class == noClass) != (bytes > largestArray) {
			t.Errorf("%d ops: class %d of %d bytes", n, class, bytes)
		}
	}
}

func TestLargeOpArraysAreUnmappedOnRelease(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		n    int
		left int64
	}{{smallOps, 0}, {smallOps + 1, 1}, {10, 1}, {30_000, 1}, {100_000, 1}} {
		if _, err := r.Run(engine.Read, make([]Request, c.n)); err != nil {
			t.Fatal(err)
		}
		if got := r.mapped.Load(); got != c.left {
			t.Fatalf("after a batch of %d: %d arrays mapped, want %d", c.n, got, c.left)
		}
	}
}

func TestKeptOpArraysAreBounded(t *testing.T) {
	r := newRig(t)
	const n = 20_000 // 1 MiB each
	var all []*batch
	for range 3 * keptBytes / largestArray {
		b := r.takeBatch("test")
		if !r.arrays.take(b, n) {
			t.Fatal("out of memory")
		}
		all = append(all, b)
	}
	for _, b := range all {
		r.giveBatch(b)
	}
	if got := r.mapped.Load(); got != keptBytes/largestArray {
		t.Fatalf("%d arrays of 1 MiB kept, want %d", got, keptBytes/largestArray)
	}
}

func TestHugeBatchIsRefusedNotFatal(t *testing.T) {
	r := newRig(t)
	var asked uintptr
	r.arrays.mapMem = func(n uintptr) unsafe.Pointer { asked = n; return nil }
	b := r.takeBatch("test")
	defer r.giveBatch(b)
	if r.arrays.take(b, math.MaxInt32) {
		t.Fatal("taken")
	}
	if asked < math.MaxInt32*opBytes {
		t.Fatalf("asked for %d bytes only", asked)
	}
}

func TestOpArrayHasOneOwnerAtATime(t *testing.T) {
	r := newRig(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 5000 {
				b := r.takeBatch("test")
				n := smallOps + 1 + i%2000
				if !r.arrays.take(b, n) || cap(b.Ops) < n {
					t.Error("no room")
					return
				}
				b.Ops = b.Ops[:n]
				b.Ops[0].Index, b.Ops[n-1].Index = uint32(g), uint32(g)
				if b.Ops[0].Index != uint32(g) || b.Ops[n-1].Index != uint32(g) {
					t.Error("somebody else wrote into the array")
				}
				r.giveBatch(b)
			}
		})
	}
	wg.Wait()
}
