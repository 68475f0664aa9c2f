package core

import (
	"syscall"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

func TestDeregisterRefusesWhatIsNotARegistration(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, 4*page, 4*page)
	for _, c := range []struct {
		id    int
		addr  DevAddr
		n     uint64
		errno syscall.Errno
		why   Reason
	}{
		{-1, 4 * page, 4 * page, syscall.EINVAL, ReasonBadDevice},
		{8, 4 * page, 4 * page, syscall.EINVAL, ReasonBadDevice},
		{1, 4 * page, 4 * page, syscall.ENODEV, ReasonNotOpen},
		{0, 0, 4 * page, syscall.ENOENT, ReasonUnknownRange},
		{0, 2 * page, page, syscall.ENOENT, ReasonUnknownRange},
		{0, 5 * page, 3 * page, syscall.ENOENT, ReasonUnknownRange}, // interior
		{0, 4*page + 1, 4 * page, syscall.ENOENT, ReasonUnknownRange},
		{0, 8 * page, page, syscall.ENOENT, ReasonUnknownRange},
		{0, 4 * page, 3 * page, syscall.ENOENT, ReasonWrongLength},
		{0, 4 * page, 5 * page, syscall.ENOENT, ReasonWrongLength},
		{0, 4 * page, 0, syscall.ENOENT, ReasonWrongLength},
	} {
		wantError(t, "Deregister", r.Deregister(c.id, c.addr, c.n), c.errno, c.why)
	}
	if r.nodes.unmaps.Load() != 0 {
		t.Fatal("something was unmapped")
	}
}

func TestDeregmemWaitsForInFlightBatchAndRefusesNewIO(t *testing.T) {
	for _, kind := range []engine.Kind{engine.Read, engine.Write} {
		r := newRig(t)
		r.open(0)
		b := fault.NewBarrier()
		r.script.Add(fault.On(kind).Late(b))
		f := newFile(t, 4*page)
		r.register(0, page, page)
		r.register(0, 2*page, page)
		inside := async(func() int {
			failed, _ := r.Run(kind, []Request{{FD: fd(f), Buf: page, Len: page}})
			return failed
		})
		b.WaitParked(1)
		r.nodes.onUnmap = func(DevAddr) error {
			if b.Parked() != 0 {
				t.Error("UNMAP with I/O inside")
			}
			return nil
		}
		dereg := async(func() error { return r.Deregister(0, page, page) })
		reg := r.find(0, page)
		until(func() bool { return reg.gate().Closed() })

		_, err := r.Transfer(kind, fd(f), 0, page, 0, 1, 0)
		wantError(t, "Transfer", err, syscall.EFAULT, ReasonRegionClosing)
		_, err = r.Transfer(kind, fd(f), 0, page, 0, 0, 0)
		wantError(t, "Transfer of 0 bytes", err, syscall.EFAULT, ReasonRegionClosing)
		reqs := []Request{{FD: fd(f), Buf: page, Len: 1}, {FD: fd(f), Buf: page, Len: 1}}
		if failed, err := r.Run(kind, reqs); failed != 2 || err != nil || reqs[0].Result != -int64(syscall.EFAULT) {
			t.Fatalf("Run = %d, %v, %+v", failed, err, reqs)
		}
		wantError(t, "second last Deregister", r.Deregister(0, page, page), syscall.ENOENT, ReasonUnknownRange)
		// A neighbour is not disturbed.
		if n, err := r.Transfer(kind, fd(f), 0, 2*page, 0, 10, 0); n != 10 || err != nil {
			t.Fatalf("neighbour: %d, %v", n, err)
		}

		b.Release()
		if err, failed := <-dereg, <-inside; err != nil || failed != 0 {
			t.Fatalf("Deregister: %v, failed %d", err, failed)
		}
	}
}

func TestDeregmemWaitsForInFlightSingleRead(t *testing.T) {
	r := newRig(t)
	r.open(0)
	b := fault.NewBarrier()
	r.single.Add(fault.On(engine.Read).Late(b))
	f := newFile(t, page)
	r.register(0, page, page)
	read := async(func() error { _, err := r.Transfer(engine.Read, fd(f), 0, page, 0, page, 0); return err })
	b.WaitParked(1)
	r.nodes.onUnmap = func(DevAddr) error {
		if b.Parked() != 0 {
			t.Error("UNMAP with I/O inside")
		}
		return nil
	}
	dereg := async(func() error { return r.Deregister(0, page, page) })
	reg := r.find(0, page)
	until(func() bool { return reg.gate().Closed() })
	b.Release()
	if e1, e2 := <-read, <-dereg; e1 != nil || e2 != nil {
		t.Fatalf("read: %v, Deregister: %v", e1, e2)
	}
}

func TestSubmitDeregisterWaitInOneThread(t *testing.T) {
	r := newRig(t)
	r.open(0)
	f := newFile(t, 16*page)
	for range 50 {
		r.register(0, page, 16*page)
		reqs := make([]Request, 32)
		for i := range reqs {
			reqs[i] = Request{FD: fd(f), Buf: page, BufOffset: int64(i) * page / 2, Len: page / 2, Offset: int64(i) * page / 2, Result: 77}
		}
		h, err := r.Submit(engine.Read, reqs)
		if err != nil {
			t.Fatal(err)
		}
		r.deregister(0, page, 16*page)
		if reqs[0].Result != 77 {
			t.Fatal("result written before wait")
		}
		if failed, err := r.Wait(h); failed != 0 || err != nil {
			t.Fatalf("Wait = %d, %v", failed, err)
		}
	}
}

func TestOfTwoConcurrentLastDeregsOneWins(t *testing.T) {
	r := newRig(t)
	r.open(0)
	for range 300 {
		r.register(0, page, page)
		var results [2]chan error
		for i := range results {
			results[i] = async(func() error { return r.Deregister(0, page, page) })
		}
		e1, e2 := <-results[0], <-results[1]
		if e1 == nil {
			e1, e2 = e2, e1
		}
		if e2 != nil {
			t.Fatalf("both failed: %v, %v", e1, e2)
		}
		wantError(t, "the second", e1, syscall.ENOENT, ReasonUnknownRange)
	}
}

func TestFailedUnmapKeepsTheRegistrationUsableAndRetriable(t *testing.T) {
	r := newRig(t)
	r.open(0)
	f := newFile(t, page)
	host := r.register(0, page, page)
	for _, errno := range []syscall.Errno{syscall.EFAULT, syscall.EINTR, syscall.EFAULT} {
		r.nodes.onUnmap = func(DevAddr) error { return errno }
		wantError(t, "Deregister", r.Deregister(0, page, page), errno, ReasonUnmap)
		if n, err := r.Transfer(engine.Read, fd(f), 0, page, 0, page, 0); n != page || err != nil {
			t.Fatalf("read after the failure: %d, %v", n, err)
		}
	}
	if again := r.register(0, page, page); again != host {
		t.Fatalf("duplicate at %#x, want %#x", again, host)
	}
	r.deregister(0, page, page) // the duplicate's
	r.nodes.onUnmap = nil
	r.deregister(0, page, page)
	if r.find(0, page) != nil {
		t.Fatal("still registered")
	}
}

func TestFailedMunmapBlocksTheRangeAndOnlyMunmapIsRetried(t *testing.T) {
	r := newRig(t)
	r.open(0)
	f := newFile(t, page)
	r.register(0, page, page)
	r.nodes.onMunmap = func(HostAddr) error { return syscall.ENOMEM }
	wantError(t, "Deregister", r.Deregister(0, page, page), syscall.ENOMEM, ReasonMunmap)
	if u := r.nodes.unmaps.Load(); u != 1 {
		t.Fatalf("UNMAPs %d, want 1", u)
	}
	_, err := r.Transfer(engine.Read, fd(f), 0, page, 0, 1, 0)
	wantError(t, "I/O after UNMAP", err, syscall.EFAULT, ReasonRegionClosing)
	_, err = r.Register(0, page, page)
	wantError(t, "Register of the blocked range", err, syscall.EINVAL, ReasonOverlap)
	wantError(t, "Deregister", r.Deregister(0, page, page), syscall.ENOMEM, ReasonMunmap)
	r.nodes.onMunmap = nil
	r.deregister(0, page, page)
	if u, m := r.nodes.unmaps.Load(), r.nodes.munmaps.Load(); u != 1 || m != 1 {
		t.Fatalf("UNMAPs %d, munmaps %d; want 1, 1", u, m)
	}
	r.register(0, page, page)
}
