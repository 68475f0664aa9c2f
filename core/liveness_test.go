package core

import (
	"strings"
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
		why       string // UNMAP is left out; "": it is not
	}{
		{"same allocation", known(7), known(7), ""},
		{"freed", known(7), gone, "freed before deregmem, or"},
		{"freed and allocated again", known(7), known(8), "freed before deregmem, and other memory"},
		{"no vendor library", unasked, unasked, ""},
		{"vendor library unloaded", known(7), unasked, "has left the process"},
		{"vendor library came and does not know it", unasked, gone, "came after regmem"},
		{"vendor library came and knows something there", unasked, known(7), "came after regmem"},
		{"refused at MAP already", gone, gone, "did not know the memory at regmem"},
		{"refused at MAP, known later", gone, known(7), "did not know the memory at regmem"},
		{"refused at MAP, unloaded later", gone, unasked, "did not know the memory at regmem"},
	} {
		for _, byClose := range []bool{false, true} {
			now := c.atMap
			log := &events{max: LevelWarn}
			r := newRig(t, withLog(log), withConnector(livingVendor{identity: func(a DevAddr, n uint64) (uint64, connectors.LifeState) {
				if a != page || n != 3*page {
					t.Errorf("asked for %#x, %d bytes", a, n)
				}
				return now.id, now.state
			}}))
			r.open(0)
			r.register(0, page, 3*page)
			if p := r.find(0, page).pin; p.Identity != c.atMap.id || p.Life != int32(c.atMap.state) {
				t.Fatalf("%s: pin %+v", c.name, p)
			}
			now = c.at
			call := callDeregmem
			if byClose {
				call = callClose
				if err := r.Close(0); err != nil {
					t.Fatal(err)
				}
			} else {
				r.deregister(0, page, 3*page)
			}
			if u := r.nodes.unmaps.Load() == 1; u != (c.why == "") || r.nodes.munmaps.Load() != 1 {
				t.Errorf("%s (close %v): UNMAP done %v, want %v; munmaps %d", c.name, byClose, u, c.why == "", r.nodes.munmaps.Load())
			}
			said := log.at(LevelWarn)
			if c.why == "" && len(said) == 0 {
				continue
			}
			if len(said) != 1 || said[0].Call != call || c.why == "" || !strings.Contains(said[0].Reason, c.why) {
				t.Errorf("%s (close %v): warnings %+v; want one of %s that says %q", c.name, byClose, said, call, c.why)
			}
		}
	}
}

// The exit handler must run before that of a vendor library in the process, and
// need not be registered where there is none.
func TestExitHandlerIsRegisteredForAVendorInTheProcess(t *testing.T) {
	now := connectors.LifeUnasked
	asked := livingVendor{identity: func(DevAddr, uint64) (uint64, connectors.LifeState) { return 1, now }}
	for _, c := range []struct {
		name string
		conn connectors.Connector
		now  connectors.LifeState
		told int64
	}{
		{"no vendor library", asked, connectors.LifeUnasked, 0},
		{"a vendor library that answers", asked, connectors.LifeKnown, 1},
		{"a vendor library that refuses", asked, connectors.LifeGone, 1},
		{"a vendor that cannot be asked", vendor{}, connectors.LifeUnasked, 1},
	} {
		now = c.now
		r := newRig(t, withConnector(c.conn))
		r.open(0)
		r.register(0, page, page)
		if got := r.ledger.pinned.Load(); got != c.told {
			t.Errorf("%s: told %d times, want %d", c.name, got, c.told)
		}
		r.deregister(0, page, page)
		if err := r.Close(0); err != nil {
			t.Fatal(err)
		}
	}
}
