package core

import (
	"testing"

	"libphoenix/connectors"
)

func TestUnmapOnlyOfMemoryThatIsWhatMapPinned(t *testing.T) {
	type answer struct {
		id    uint64
		state connectors.LifeState
	}
	known := func(id uint64) answer { return answer{id, connectors.LifeKnown} }
	gone, unasked := answer{0, connectors.LifeGone}, answer{0, connectors.LifeUnasked}
	for _, c := range []struct {
		name      string
		atMap, at answer
		unmap     bool
	}{
		{"same allocation", known(7), known(7), true},
		{"freed", known(7), gone, false},
		{"freed and allocated again", known(7), known(8), false},
		{"no vendor library", unasked, unasked, true},
		{"vendor library unloaded", known(7), unasked, false},
		{"vendor library came and does not know it", unasked, gone, false},
		{"vendor library came and knows something there", unasked, known(7), false},
		{"refused at MAP already", gone, gone, false},
		{"refused at MAP, known later", gone, known(7), false},
	} {
		for _, byClose := range []bool{false, true} {
			now := c.atMap
			log := &events{max: LevelWarn}
			r := newRig(t, withLog(log), withConnector(livingVendor{identity: func(a DevAddr) (uint64, connectors.LifeState) {
				if a != page {
					t.Errorf("asked for %#x", a)
				}
				return now.id, now.state
			}}))
			r.open(0)
			r.register(0, page, page)
			if p := r.find(0, page).pin; p.Identity != c.atMap.id || p.Life != int32(c.atMap.state) {
				t.Fatalf("%s: pin %+v", c.name, p)
			}
			now = c.at
			if byClose {
				if err := r.Close(0); err != nil {
					t.Fatal(err)
				}
			} else {
				r.deregister(0, page, page)
			}
			if u := r.nodes.unmaps.Load() == 1; u != c.unmap || r.nodes.munmaps.Load() != 1 {
				t.Errorf("%s (close %v): UNMAP done %v, want %v; munmaps %d", c.name, byClose, u, c.unmap, r.nodes.munmaps.Load())
			}
			if warned := len(log.at(LevelWarn)); (warned == 1) == c.unmap {
				t.Errorf("%s (close %v): %d warnings", c.name, byClose, warned)
			}
		}
	}
}
