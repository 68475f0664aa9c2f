package core

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

func TestRegisterRefusesBadArguments(t *testing.T) {
	r := newRig(t)
	r.open(0)
	for _, c := range []struct {
		id    int
		addr  DevAddr
		n     uint64
		errno syscall.Errno
		why   Reason
	}{
		{-1, page, page, syscall.EINVAL, ReasonBadDevice},
		{8, page, page, syscall.EINVAL, ReasonBadDevice},
		{1, page, page, syscall.ENODEV, ReasonNotOpen},
		{0, 0, page, syscall.EINVAL, ReasonNullAddress},
		{0, page, 0, syscall.EINVAL, ReasonLength},
		{0, page, 1, syscall.EINVAL, ReasonLength},
		{0, page, page + 4096, syscall.EINVAL, ReasonLength},
		{0, page + 1, page, syscall.EINVAL, ReasonAlignment},
		{0, page + 4096, page, syscall.EINVAL, ReasonAlignment},
		{0, ^DevAddr(0) &^ (page - 1), page, syscall.EINVAL, ReasonRangeOverflow}, // ends exactly at 2^64
		{0, page, ^uint64(0) &^ (page - 1), syscall.EINVAL, ReasonRangeOverflow},
	} {
		host, err := r.Register(c.id, c.addr, c.n)
		wantError(t, "Register", err, c.errno, c.why)
		if host != 0 {
			t.Fatalf("host %#x with an error", host)
		}
		if class := c.why.Class(); class != ClassArgument && class != ClassDevice {
			t.Fatalf("%q is of class %d: regmem would not answer -EINVAL", c.why, class)
		}
	}
	if r.nodes.maps.Load() != 0 {
		t.Fatal("something was mapped")
	}
}

func TestExactDuplicateIsOneMoreReferenceToTheSameTarget(t *testing.T) {
	r := newRig(t)
	r.open(0)
	host := r.register(0, page, 2*page)
	for range 2 {
		if again := r.register(0, page, 2*page); again != host {
			t.Fatalf("duplicate at %#x, want %#x", again, host)
		}
	}
	if pin := r.find(0, page).pin; pin.Refs != 3 || pin.State != PinMapped {
		t.Fatalf("pin %+v", pin)
	}
	for i := range 3 {
		if r.nodes.unmaps.Load() != 0 {
			t.Fatalf("unmapped after %d of 3 deregs", i)
		}
		r.deregister(0, page, 2*page)
	}
	if m, u := r.nodes.maps.Load(), r.nodes.unmaps.Load(); m != 1 || u != 1 {
		t.Fatalf("MAPs %d, UNMAPs %d; want 1, 1", m, u)
	}
	wantError(t, "one Deregister too many", r.Deregister(0, page, 2*page), syscall.ENOENT, ReasonUnknownRange)
}

func TestOverlapIsRefusedAndNeighboursAreNot(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.open(1)
	r.register(0, 10*page, 4*page)
	for _, c := range []struct{ first, pages int }{
		{9, 2}, {13, 1}, {13, 9}, {10, 3}, {10, 5}, {11, 1}, {11, 3}, {8, 10}, {9, 5},
	} {
		_, err := r.Register(0, DevAddr(c.first)*page, uint64(c.pages)*page)
		wantError(t, "overlapping Register", err, syscall.EINVAL, ReasonOverlap)
	}
	r.register(0, 9*page, page)
	r.register(0, 14*page, page)
	r.register(1, 11*page, page) // another device
}

func TestFailedMapIsUndoneWhateverItsErrno(t *testing.T) {
	r := newRig(t)
	r.open(0)
	for _, errno := range []syscall.Errno{syscall.ENOMEM, syscall.EINVAL, syscall.EBUSY, syscall.EFAULT, 524} {
		r.nodes.onMap = func(DevAddr) error { return errno }
		host, err := r.Register(0, page, page)
		wantError(t, "Register", err, errno, ReasonMap)
		if ReasonMap.Class() != ClassMap || host != 0 {
			t.Fatalf("class %d, host %#x", ReasonMap.Class(), host)
		}
		if r.find(0, page) != nil {
			t.Fatal("the range is still taken")
		}
	}
	r.nodes.onMap = func(DevAddr) error { return errors.New("no errno: our bug") }
	_, err := r.Register(0, page, page)
	wantError(t, "Register", err, syscall.EIO, ReasonMap)
	r.nodes.onMap = nil
	r.register(0, page, page)
}

func TestRegisterWithoutMemoryForAPinIsENOMEM(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.ledger.full.Store(true)
	_, err := r.Register(0, page, page)
	wantError(t, "Register", err, syscall.ENOMEM, ReasonNoMemory)
	if ReasonNoMemory.Class() != ClassMemory {
		t.Fatal("class")
	}
	r.ledger.full.Store(false)
	host := r.register(0, page, page)
	if r.ledger.pinned.Load() == 0 {
		t.Fatal("the ledger was not told of the first MAP")
	}
	r.ledger.full.Store(true) // a duplicate needs no memory
	if again := r.register(0, page, page); again != host {
		t.Fatalf("duplicate at %#x, want %#x", again, host)
	}
}

func TestRegistrationIsUsableMemory(t *testing.T) {
	r := newRig(t, withOwnLedger())
	r.open(0)
	f := newFile(t, 2*page)
	host := r.register(0, 7*page, 2*page)
	reqs := []Request{{FD: fd(f), Buf: 7 * page, Len: 2 * page}}
	if failed, err := r.Run(engine.Read, reqs); failed != 0 || err != nil {
		t.Fatalf("Run = %d, %v", failed, err)
	}
	wantPattern(t, bytesAt(host, 2*page), 0)
}

func TestConcurrentRegmemOfTheSameRangeMapsOnce(t *testing.T) {
	r := newRig(t)
	r.open(0)
	inside, proceed := make(chan bool), make(chan bool)
	r.nodes.onMap = func(DevAddr) error { inside <- true; <-proceed; return nil }
	reg := func() HostAddr { h, _ := r.Register(0, page, page); return h }
	first := async(reg)
	<-inside
	second := async(reg)
	until(func() bool { return r.calls(0) == 2 })
	_, err := r.Transfer(engine.Read, 0, 0, page, 0, 1, 0)
	wantError(t, "I/O before publication", err, syscall.EFAULT, ReasonRegionClosing)
	close(proceed)
	if a, b := <-first, <-second; a == 0 || a != b {
		t.Fatalf("targets %#x, %#x", a, b)
	}
	if m := r.nodes.maps.Load(); m != 1 {
		t.Fatalf("MAPs %d, want 1", m)
	}
}

func TestRegmemThatWaitedForAFailedOneMapsItself(t *testing.T) {
	r := newRig(t)
	r.open(0)
	inside, proceed := make(chan bool, 2), make(chan bool)
	var calls atomic.Int64
	r.nodes.onMap = func(DevAddr) error {
		inside <- true
		<-proceed
		if calls.Add(1) == 1 {
			return syscall.ENOMEM
		}
		return nil
	}
	reg := func() error { _, err := r.Register(0, page, page); return err }
	first := async(reg)
	<-inside
	second := async(reg)
	until(func() bool { return r.calls(0) == 2 })
	close(proceed)
	wantError(t, "first Register", <-first, syscall.ENOMEM, ReasonMap)
	if err := <-second; err != nil {
		t.Fatalf("second Register: %v", err)
	}
}

func TestRegmemOverlappingAReservedRangeIsRefusedAtOnce(t *testing.T) {
	r := newRig(t)
	r.open(0)
	inside, proceed := make(chan bool), make(chan bool)
	r.nodes.onMap = func(DevAddr) error { inside <- true; <-proceed; return nil }
	first := async(func() error { _, err := r.Register(0, 2*page, 2*page); return err })
	<-inside
	_, err := r.Register(0, 3*page, 2*page)
	wantError(t, "Register", err, syscall.EINVAL, ReasonOverlap)
	wantError(t, "Deregister", r.Deregister(0, 2*page, 2*page), syscall.ENOENT, ReasonUnknownRange)
	close(proceed)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
}

func TestRegmemOfADrainingRangeWaitsAndMakesAFreshOne(t *testing.T) {
	r := newRig(t)
	r.open(0)
	b := fault.NewBarrier()
	r.script.Add(fault.On(engine.Read).Late(b))
	f := newFile(t, page)
	r.register(0, page, page)
	read := async(func() int {
		failed, _ := r.Run(engine.Read, []Request{{FD: fd(f), Buf: page, Len: page}})
		return failed
	})
	b.WaitParked(1)
	dereg := async(func() error { return r.Deregister(0, page, page) })
	until(func() bool { return r.find(0, page).gate().Closed() })

	_, err := r.Register(0, page, 2*page) // not exact: refused at once
	wantError(t, "overlapping Register", err, syscall.EINVAL, ReasonOverlap)
	again := async(func() error {
		_, err := r.Register(0, page, page)
		if r.nodes.munmaps.Load() != 1 {
			t.Error("regmem returned before the old mapping was gone")
		}
		return err
	})
	until(func() bool { return r.calls(0) == 2 })
	b.Release()
	if e1, e2, failed := <-dereg, <-again, <-read; e1 != nil || e2 != nil || failed != 0 {
		t.Fatalf("Deregister: %v, Register: %v, read failed: %d", e1, e2, failed)
	}
	if m, u := r.nodes.maps.Load(), r.nodes.unmaps.Load(); m != 2 || u != 1 {
		t.Fatalf("MAPs %d, UNMAPs %d; want 2, 1", m, u)
	}
	if n, err := r.Transfer(engine.Read, fd(f), 0, page, 0, 100, 0); n != 100 || err != nil {
		t.Fatalf("read through the fresh registration: %d, %v", n, err)
	}
}

func TestRegmemThatWaitsGivesUpWhenTheDeviceCloses(t *testing.T) {
	r := newRig(t)
	r.open(0)
	inside, proceed := make(chan bool), make(chan bool)
	r.nodes.onMap = func(DevAddr) error { inside <- true; <-proceed; return nil }
	first := async(func() error { _, err := r.Register(0, page, page); return err })
	<-inside
	second := async(func() error { _, err := r.Register(0, page, page); return err })
	until(func() bool { return r.calls(0) == 2 })
	closed := async(func() error { return r.Close(0) })
	wantError(t, "waiting Register", <-second, syscall.ESHUTDOWN, ReasonClosing)
	close(proceed)
	if e1, e2 := <-first, <-closed; e1 != nil || e2 != nil {
		t.Fatalf("Register: %v, Close: %v", e1, e2)
	}
}

func TestEmbeddedTargetIsTheAddressAndTheRangeIsChecked(t *testing.T) {
	bad := DevAddr(8 * page)
	r := newRig(t, withConnector(embeddedVendor{check: func(a DevAddr, n uint64) error {
		if a <= bad && bad < a+DevAddr(n) {
			return syscall.EFAULT
		}
		return nil
	}}))
	r.open(3)
	if host := r.register(3, page, 2*page); host != page {
		t.Fatalf("target %#x, want the address %#x", host, page)
	}
	if pin := r.find(3, page).pin; pin.State != PinEmbedded || pin.FD != -1 {
		t.Fatalf("pin %+v", pin)
	}
	_, err := r.Register(3, 7*page, 4*page)
	wantError(t, "Register", err, syscall.EFAULT, ReasonMap)
	r.deregister(3, page, 2*page)
	if r.ledger.pinned.Load() != 0 || r.nodes.munmaps.Load() != 0 {
		t.Fatal("embedded memory was treated as pinned or mapped")
	}
}

func TestPinTellsWhatTheExitHandlerNeeds(t *testing.T) {
	r := newRig(t)
	r.open(6)
	host := r.register(6, 3*page, 2*page)
	p := r.find(6, 3*page).pin
	if p.State != PinMapped || p.PID != int32(syscall.Getpid()) || p.FD != 1<<20 || p.Device != 6 ||
		p.Refs != 1 || p.Addr != 3*page || p.Host != uint64(host) || p.Len != 2*page || p.Gate.Closed() {
		t.Fatalf("pin %+v", p)
	}
	r.nodes.onUnmap = func(DevAddr) error {
		if p.State != PinUnmapped {
			t.Errorf("state %d during UNMAP, want PinUnmapped", p.State)
		}
		return nil
	}
	r.deregister(6, 3*page, 2*page)
	if p.State != PinFree {
		t.Fatalf("state %d after deregmem, want PinFree", p.State)
	}
}
