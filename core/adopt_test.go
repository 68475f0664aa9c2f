package core

import (
	"sync/atomic"
	"syscall"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

// forked is a library as a child of r has it, with what fork copied from r at
// this instant.
func (r *rig) forked(options ...option) *rig {
	r.t.Helper()
	child := newRig(r.t, options...)
	var h Heritage
	for i := range r.devices {
		d := &r.devices[i]
		d.mu.RLock()
		h.Opens[i] = d.opens
		d.mu.RUnlock()
	}
	r.regs.each(func(reg *registration) {
		if reg.pin == nil {
			return
		}
		// What phx_live_forked leaves: no users, no owner.
		p := &Pin{State: atomic.LoadUint32(&reg.pin.State), FD: reg.pin.FD, Device: reg.pin.Device, Life: reg.pin.Life,
			Refs: reg.pin.Refs, Addr: reg.pin.Addr, Host: reg.pin.Host, Len: reg.pin.Len, Identity: reg.pin.Identity}
		if reg.gate().Closed() {
			p.Gate.Close()
		}
		if p.State == PinMapped || p.State == PinEmbedded {
			h.Pins = append(h.Pins, p)
		}
	})
	child.Adopt(h)
	child.regs.each(func(reg *registration) {
		if reg.pin != nil {
			child.ledger.taken.Add(1) // by the parent
		}
	})
	return child
}

func (r *rig) wantNodes(what string, opens, maps, unmaps, munmaps, closes int64) {
	r.t.Helper()
	n := r.nodes
	got := [5]int64{n.opens.Load(), n.maps.Load(), n.unmaps.Load(), n.munmaps.Load(), n.closes.Load()}
	if want := [5]int64{opens, maps, unmaps, munmaps, closes}; got != want {
		r.t.Errorf("%s: opens, MAPs, UNMAPs, munmaps, closes: got %v, want %v", what, got, want)
	}
}

func (r *rig) wantRead(what string, id int32, addr DevAddr, want int64) {
	r.t.Helper()
	f := newFile(r.t, page)
	if n, err := r.Transfer(engine.Read, fd(f), id, addr, 0, 100, 0); n != want || (want == 100) != (err == nil) {
		r.t.Errorf("%s: read at %#x of device %d: got %d, %v, want %d", what, addr, id, n, err, want)
	}
	failed, err := r.Run(engine.Read, []Request{{FD: fd(f), Device: id, Buf: addr, Len: 100}})
	if err != nil || (failed == 0) != (want == 100) {
		r.t.Errorf("%s: batch at %#x of device %d: got %d failures, %v", what, addr, id, failed, err)
	}
}

func TestChildReadsThroughWhatItsParentRegistered(t *testing.T) {
	parent := newRig(t)
	parent.open(2)
	host := parent.register(2, page, 2*page)
	child := parent.forked()
	child.wantRead("child", 2, page+100, 100)
	child.wantRead("child, in no registration", 2, 9*page, 0)
	child.wantRead("child, device that nobody opened", 3, page, 0)
	if got := child.register(2, page, 2*page); got != host {
		t.Errorf("duplicate regmem: target %#x, want the parent's %#x", got, host)
	}
	child.wantNodes("child", 0, 0, 0, 0, 0)
}

func TestChildDropsWhatIsBorrowedAndTouchesNothing(t *testing.T) {
	parent := newRig(t)
	parent.open(0)
	parent.open(0)
	parent.register(0, page, page)
	parent.register(0, page, page) // counted twice
	parent.register(0, 4*page, page)
	child := parent.forked()

	child.deregister(0, page, page)
	child.wantRead("one reference is left", 0, page, 100)
	child.deregister(0, page, page)
	child.wantRead("deregistered", 0, page, 0)
	wantError(t, "third Deregister", child.Deregister(0, page, page), syscall.ENOENT, ReasonUnknownRange)
	if err := child.Close(0); err != nil { // one of the two
		t.Fatal(err)
	}
	child.wantRead("one open is left", 0, 4*page, 100)
	if err := child.Close(0); err != nil {
		t.Fatal(err)
	}
	wantError(t, "third Close", child.Close(0), syscall.ENODEV, ReasonNotOpen)
	child.wantNodes("child", 0, 0, 0, 0, 0)
	parent.wantRead("parent", 0, page, 100)
	parent.wantRead("parent", 0, 4*page, 100)
}

func TestChildMapsThroughANodeOfItsOwn(t *testing.T) {
	parent := newRig(t)
	parent.open(0)
	parent.register(0, page, page)
	child := parent.forked()
	child.register(0, 8*page, page) // the first need
	child.register(0, 10*page, page)
	child.open(0) // no second node
	child.wantNodes("child", 1, 2, 0, 0, 0)
	child.deregister(0, 8*page, page)
	for range 2 {
		if err := child.Close(0); err != nil {
			t.Fatal(err)
		}
	}
	child.wantNodes("child, closed", 1, 2, 2, 2, 1)
	parent.wantNodes("parent", 1, 1, 0, 0, 0)
	parent.wantRead("parent", 0, page, 100)

	child.open(0) // as any process
	child.register(0, page, page)
	child.wantNodes("child, opened again", 2, 3, 2, 2, 1)
}

func TestOpenOfABorrowedDeviceOpensIt(t *testing.T) {
	parent := newRig(t)
	parent.open(5)
	child := parent.forked()
	child.nodes.onOpen = func() error { return syscall.EACCES }
	wantError(t, "Open", child.Open(5), syscall.EACCES, ReasonOpenNode)
	_, err := child.Register(5, page, page)
	wantError(t, "Register", err, syscall.EACCES, ReasonMap)
	child.nodes.onOpen = nil
	child.open(5)
	child.wantNodes("child", 1, 0, 0, 0, 0)
	if got := child.devices[5].opens; got != 2 {
		t.Errorf("opens: got %d, want the parent's and the child's", got)
	}
}

// A node that is opened while the last close is on its way is closed by it.
func TestLastCloseWaitsForTheOpenOfABorrowedDevice(t *testing.T) {
	parent := newRig(t)
	parent.open(0)
	child := parent.forked()
	inside, proceed := make(chan bool), make(chan bool)
	child.nodes.onOpen = func() error { inside <- true; <-proceed; return nil }
	opened := async(func() error { return child.Open(0) })
	<-inside
	child.nodes.onOpen = nil
	closed := async(func() error { return child.Close(0) })
	until(func() bool { return child.state(0) != deviceOpen })
	close(proceed)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := <-opened; err != nil { // after the close, or refused by it
		wantError(t, "Open", err, syscall.EBUSY, ReasonClosing)
	}
}

func TestChildLeavesOutWhatItsParentWasMakingOrTakingDown(t *testing.T) {
	parent := newRig(t)
	parent.open(0)
	parent.register(0, page, page)
	parent.register(0, 3*page, page)
	b := fault.NewBarrier()
	parent.script.Add(fault.On(engine.Read).Late(b))
	f := newFile(t, page)
	read := async(func() int {
		failed, _ := parent.Run(engine.Read, []Request{{FD: fd(f), Buf: page, Len: page}})
		return failed
	})
	b.WaitParked(1)
	dereg := async(func() error { return parent.Deregister(0, page, page) })
	until(func() bool { return parent.find(0, page).gate().Closed() })
	inside, proceed := make(chan bool), make(chan bool)
	parent.nodes.onMap = func(DevAddr) error { inside <- true; <-proceed; return nil }
	regmem := async(func() error { _, err := parent.Register(0, 5*page, page); return err })
	<-inside

	child := parent.forked()
	child.wantRead("draining in the parent", 0, page, 0)
	child.wantRead("reserved in the parent", 0, 5*page, 0)
	child.wantRead("live in the parent", 0, 3*page, 100)
	child.register(0, page, page)
	child.register(0, 5*page, page)
	child.wantRead("registered by the child", 0, page, 100)

	close(proceed)
	b.Release()
	if e1, e2, failed := <-dereg, <-regmem, <-read; e1 != nil || e2 != nil || failed != 0 {
		t.Fatalf("parent: Deregister %v, Register %v, read failed: %d", e1, e2, failed)
	}
}

func TestGrandchildBorrowsFromBoth(t *testing.T) {
	parent := newRig(t)
	parent.open(0)
	parent.register(0, page, page)
	child := parent.forked()
	child.register(0, 3*page, page)
	grandchild := child.forked()
	grandchild.wantRead("the grandparent's", 0, page, 100)
	grandchild.wantRead("the parent's", 0, 3*page, 100)
	grandchild.deregister(0, page, page)
	grandchild.deregister(0, 3*page, page)
	if err := grandchild.Close(0); err != nil {
		t.Fatal(err)
	}
	grandchild.wantNodes("grandchild", 0, 0, 0, 0, 0)
	child.wantRead("child", 0, page, 100)
	child.wantRead("child", 0, 3*page, 100)
}

func TestChildOfAnEmbeddedDeviceUsesTheMemoryWhereItLies(t *testing.T) {
	parent := newRig(t, withConnector(embeddedVendor{}))
	parent.open(0)
	mem := mapMemory(2 * page)
	defer unmapMemory(mem, 2*page)
	at := (DevAddr(uintptr(mem)) + page - 1) &^ (page - 1)
	parent.register(0, at, page)
	child := parent.forked(withConnector(embeddedVendor{}))
	child.wantRead("child", 0, at, 100)
	child.deregister(0, at, page)
	child.register(0, at, page)
	child.wantRead("child, its own", 0, at, 100)
	child.open(0)
}

func TestAdoptIgnoresWhatCannotBe(t *testing.T) {
	r := newRig(t)
	closed := &Pin{State: PinMapped, Device: 0, Addr: page, Len: page}
	closed.Gate.Close()
	r.Adopt(Heritage{Opens: [Devices]int{0: 1}, Pins: []*Pin{
		closed,
		{State: PinMapped, Device: Devices, Addr: page, Len: page},
		{State: PinMapped, Device: -1, Addr: page, Len: page},
		{State: PinMapped, Device: 3, Addr: page, Len: page}, // not open
	}})
	for i := range r.devices {
		if r.devices[i].ranges.root != nil {
			t.Errorf("device %d has a range", i)
		}
	}
}
