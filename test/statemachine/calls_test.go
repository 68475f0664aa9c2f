package statemachine

import (
	"fmt"
	"math"

	"pgregory.net/rapid"

	"libphoenix/core"
)

// What machine calls: devices and registrations.

func drawDevice(t *rapid.T) int {
	return rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, -1, 8}).Draw(t, "device")
}

// drawRange is a range that may be registered, mostly one with neighbours.
func (s *machine) drawRange(t *rapid.T, id int) (core.DevAddr, uint64) {
	if id >= 0 && id < core.Devices && len(s.m.devices[id].areas) > 0 && rapid.IntRange(0, 3).Draw(t, "known") > 0 {
		a := rapid.SampledFrom(s.m.devices[id].areas).Draw(t, "area")
		return a.addr, a.n
	}
	addr := core.DevAddr(rapid.SampledFrom([]int{1, 2, 3, 4, pageNoMap, pageLateUnmap, pageLateMunmap}).Draw(t, "page")) * page
	n := uint64(rapid.IntRange(1, 3).Draw(t, "pages")) * page
	switch rapid.IntRange(0, 30).Draw(t, "odd") {
	case 0:
		n += 4096
	case 1:
		addr += 4096
	case 2:
		addr = 0
	case 3:
		n = 0
	case 4:
		addr = math.MaxUint64 - page + 1
	}
	return addr, n
}

func (s *machine) open(t *rapid.T) {
	id := drawDevice(t)
	want(t, fmt.Sprintf("Open(%d)", id), s.l.Open(id), s.m.open(id))
}

func (s *machine) close(t *rapid.T) {
	id := drawDevice(t)
	if id >= 0 && id < core.Devices && s.m.devices[id].opens == 1 && s.waiting(id, turnRegister) {
		return // whether that regmem gives up or begins too late is anybody's guess
	}
	what := fmt.Sprintf("Close(%d)", id)
	last, a := s.m.close(id)
	if !last {
		want(t, what, s.l.Close(id), a)
		return
	}
	d := &s.m.devices[id]
	blocked := s.waiting(id, turnDeregister)
	for _, a := range d.areas {
		blocked = blocked || a.users > 0
	}
	if !blocked {
		want(t, what, s.l.Close(id), s.m.shut(id))
		return
	}
	var err error
	s.later(what, id, turnClose, func() { err = s.l.Close(id) }, func(t *rapid.T) { want(t, what, err, s.m.shut(id)) })
	until(t, what+" begins", func() bool { return s.probe(id, 0) == closing() })
}

func (s *machine) register(t *rapid.T) {
	id := drawDevice(t)
	addr, n := s.drawRange(t, id)
	what := describe("Register", id, addr, n)
	fresh, old, a := s.m.register(id, addr, n)
	if old != nil && old.phase == draining {
		var host core.HostAddr
		var err error
		s.later(what, id, turnRegister, func() { host, err = s.l.Register(id, addr, n) }, func(t *rapid.T) {
			fresh, old, a := s.m.register(id, addr, n)
			wantHost(t, what, host, err, fresh, old, a)
		})
		return
	}
	host, err := s.l.Register(id, addr, n)
	wantHost(t, what, host, err, fresh, old, a)
}

// wantHost compares what Register answered, and notes the address of a fresh
// area. That it is the right one shows at the first transfer.
func wantHost(t *rapid.T, what string, host core.HostAddr, err error, fresh, old *area, a answer) {
	want(t, what, err, a)
	switch {
	case fresh != nil:
		fresh.host = host
	case old != nil && old.host != host:
		t.Fatalf("%s: got %#x for a duplicate of %#x", what, host, old.host)
	case !a.ok() && host != 0:
		t.Fatalf("%s: an address beside an error", what)
	}
}

func (s *machine) deregister(t *rapid.T) {
	id := drawDevice(t)
	addr, n := s.drawRange(t, id)
	what := describe("Deregister", id, addr, n)
	last, a := s.m.deregister(id, addr, n)
	if last == nil {
		want(t, what, s.l.Deregister(id, addr, n), a)
		return
	}
	if last.users == 0 {
		want(t, what, s.l.Deregister(id, addr, n), s.m.finish(id, last))
		return
	}
	var err error
	s.later(what, id, turnDeregister, func() { err = s.l.Deregister(id, addr, n) }, func(t *rapid.T) {
		want(t, what, err, s.m.finish(id, last))
	})
	until(t, what+" refuses I/O", func() bool { return s.probe(id, addr) == removed() })
}
