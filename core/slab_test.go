package core

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestPlaceCountsThroughTheChunks(t *testing.T) {
	chunk, at := 0, uint32(0)
	for i := uint32(0); i < 100_000; i++ {
		if c, a := place(i); c != chunk || a != at {
			t.Fatalf("place(%d) = %d, %d; want %d, %d", i, c, a, chunk, at)
		}
		if at++; at == slabFirst<<chunk {
			chunk, at = chunk+1, 0
		}
	}
	if c, a := place(slabLimit - 1); c != slabChunks-1 || a != slabFirst<<c-1 {
		t.Fatalf("the last entry is at %d, %d", c, a)
	}
	if slabLimit > handleIndexMask {
		t.Fatalf("%d entries do not fit a handle", slabLimit)
	}
}

func TestSlabEntriesKeepTheirIndexAndPlace(t *testing.T) {
	type entry struct{ index uint32 }
	s := slab[entry]{init: func(i uint32, e *entry) { e.index = i }}
	var all []*entry
	seen := map[*entry]bool{}
	for range 1000 {
		e := s.take()
		if seen[e] || s.at(e.index) != e || s.find(e.index) != e {
			t.Fatalf("entry %d: taken twice or not at its index", e.index)
		}
		seen[e] = true
		all = append(all, e)
	}
	for _, index := range []uint32{1984, slabLimit - 1, slabLimit, ^uint32(0)} { // 1984 = 64*31, the first not made
		if s.find(index) != nil {
			t.Fatalf("find(%d) found an entry that was never made", index)
		}
	}
	for _, e := range all {
		s.give(e.index)
	}
	for range 1000 {
		if e := s.take(); !seen[e] {
			t.Fatal("a new entry although enough were given back")
		}
	}
}

func TestSlabEntryHasOneOwnerAtATime(t *testing.T) {
	type entry struct {
		index uint32
		owned atomic.Bool
	}
	s := slab[entry]{init: func(i uint32, e *entry) { e.index = i }}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var mine []*entry
			for i := range 20_000 {
				if i%7 < 4 {
					e := s.take()
					if e.owned.Swap(true) {
						t.Error("an entry with two owners")
					}
					mine = append(mine, e)
				} else if len(mine) > 0 {
					e := mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					e.owned.Store(false)
					s.give(e.index)
				}
				if len(mine) > 20 {
					for _, e := range mine {
						e.owned.Store(false)
						s.give(e.index)
					}
					mine = mine[:0]
				}
			}
			for _, e := range mine {
				e.owned.Store(false)
				s.give(e.index)
			}
		})
	}
	wg.Wait()
	if held := s.held(); held != 0 {
		t.Fatalf("%d entries lost", held)
	}
	if s.grown > 2 { // 8 threads with at most 25 each
		t.Fatalf("grew to %d chunks", s.grown)
	}
}
