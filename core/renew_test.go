package core

import (
	"sync/atomic"
	"syscall"
	"testing"

	"libphoenix/connectors"
	"libphoenix/engine"
)

// memory is a vendor whose answer about a page anywhere can be changed.
type memory struct {
	id    atomic.Uint64
	state atomic.Int32 // connectors.LifeState
}

func (m *memory) connector() connectors.Connector {
	return livingVendor{identity: func(_ DevAddr, n uint64) (uint64, connectors.LifeState) {
		if n != page { // not the registration
			return 0, connectors.LifeGone
		}
		return m.id.Load(), connectors.LifeState(m.state.Load())
	}}
}

func TestDuplicateOfOtherMemoryAtTheAddressIsMappedAfresh(t *testing.T) {
	m, log := new(memory), &events{max: LevelWarn}
	m.id.Store(7)
	r := newRig(t, withConnector(m.connector()), withLog(log))
	r.open(0)
	old := r.register(0, page, page)
	if r.register(0, page, page) != old || r.nodes.maps.Load() != 1 {
		t.Fatal("a duplicate of the same memory is another mapping")
	}
	m.id.Store(8) // freed, and allocated again
	r.register(0, page, page)
	if maps, unmaps, gone := r.nodes.maps.Load(), r.nodes.unmaps.Load(), r.nodes.munmaps.Load(); maps != 2 || unmaps != 0 || gone != 1 {
		t.Fatalf("maps %d, UNMAPs %d, munmaps %d; want 2, 0, 1", maps, unmaps, gone)
	}
	if p := r.find(0, page).pin; p.Identity != 8 || p.Refs != 3 {
		t.Fatalf("identity %d, %d references; want 8, 3", p.Identity, p.Refs)
	}
	if said := log.at(LevelWarn); len(said) != 1 || said[0].Call != callRegmem {
		t.Fatalf("warnings %+v, want one of %s", said, callRegmem)
	}
	f := newFile(t, page)
	if n, err := r.Transfer(engine.Read, fd(f), 0, page, 0, page, 0); n != page || err != nil {
		t.Fatalf("read: %d, %v", n, err)
	}
	for range 3 { // one for each regmem
		r.deregister(0, page, page)
	}
	if r.find(0, page) != nil || r.nodes.unmaps.Load() != 1 {
		t.Fatalf("registered %v, UNMAPs %d; want the new memory's", r.find(0, page) != nil, r.nodes.unmaps.Load())
	}
}

// Only an answer that names other memory says so.
func TestDuplicateStaysWhereTheVendorIsNotSure(t *testing.T) {
	for _, c := range []struct{ atMap, now connectors.LifeState }{
		{connectors.LifeKnown, connectors.LifeGone},
		{connectors.LifeKnown, connectors.LifeUnasked},
		{connectors.LifeUnasked, connectors.LifeKnown},
		{connectors.LifeGone, connectors.LifeKnown},
	} {
		m := new(memory)
		m.id.Store(7)
		m.state.Store(int32(c.atMap))
		r := newRig(t, withConnector(m.connector()))
		r.open(0)
		host := r.register(0, page, page)
		m.id.Store(8)
		m.state.Store(int32(c.now))
		if r.register(0, page, page) != host || r.nodes.maps.Load() != 1 {
			t.Errorf("at MAP %d, now %d: mapped again", c.atMap, c.now)
		}
		if err := r.Close(0); err != nil {
			t.Fatal(err)
		}
	}
}

// The old mapping stays as long as a transfer is inside it.
func TestFreshMappingWaitsForIOInsideTheOldOne(t *testing.T) {
	m := new(memory)
	r := newRig(t, withConnector(m.connector()))
	r.open(0)
	r.register(0, page, page)
	g, _, bad := r.enter(0, page, 0, 16)
	if bad != nil {
		t.Fatal(bad)
	}
	m.id.Store(1)
	done := async(func() error { _, err := r.Register(0, page, page); return err })
	until(func() bool { reg := r.find(0, page); return reg != nil && reg.gate().Closed() })
	if r.nodes.munmaps.Load() != 0 {
		t.Fatal("unmapped under I/O")
	}
	g.gate().Leave()
	if err := <-done; err != nil || r.nodes.munmaps.Load() != 1 {
		t.Fatalf("Register: %v, munmaps %d", err, r.nodes.munmaps.Load())
	}
	if err := r.Close(0); err != nil {
		t.Fatal(err)
	}
}

func TestThreadsThatRenewTogetherKeepEveryReference(t *testing.T) {
	const threads = 8
	m := new(memory)
	r := newRig(t, withConnector(m.connector()))
	r.open(0)
	r.register(0, page, page)
	m.id.Store(1)
	var all []chan error
	for range threads {
		all = append(all, async(func() error { _, err := r.Register(0, page, page); return err }))
	}
	for _, c := range all {
		if err := <-c; err != nil {
			t.Fatal(err)
		}
	}
	if maps := r.nodes.maps.Load(); maps != 2 {
		t.Fatalf("%d mappings, want the old one and one new", maps)
	}
	for i := range threads + 1 {
		if err := r.Deregister(0, page, page); err != nil {
			t.Fatalf("deregmem %d of %d: %v", i+1, threads+1, err)
		}
	}
	wantError(t, "one deregmem too many", r.Deregister(0, page, page), syscall.ENOENT, ReasonUnknownRange)
}

func TestFailedMunmapOfTheOldMappingIsTheAnswer(t *testing.T) {
	m := new(memory)
	r := newRig(t, withConnector(m.connector()))
	r.open(0)
	r.register(0, page, page)
	m.id.Store(1)
	r.nodes.onMunmap = func(HostAddr) error { return syscall.ENOMEM }
	_, err := r.Register(0, page, page)
	wantError(t, "Register", err, syscall.ENOMEM, ReasonMap)
	r.nodes.onMunmap = nil
	r.deregister(0, page, page)
	r.register(0, page, page)
	if err := r.Close(0); err != nil {
		t.Fatal(err)
	}
}
