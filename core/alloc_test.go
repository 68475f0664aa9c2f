package core

import (
	"syscall"
	"testing"

	"libphoenix/engine"
)

// steady fails if f allocates once its pools are filled.
func steady(t *testing.T, name string, f func()) {
	t.Helper()
	for range 20 {
		f()
	}
	if got := testing.AllocsPerRun(100, f); got != 0 {
		t.Errorf("%s: %v allocations per call, want 0", name, got)
	}
}

func TestNothingIsAllocatedInSteadyState(t *testing.T) {
	r := newRig(t, withOwnLedger())
	// The fake node's book allocates: embedded memory measures core alone.
	e := newRig(t, withOwnLedger(), withConnector(embeddedVendor{}))
	r.open(0)
	e.open(0)
	r.register(0, page, page)
	f := newFile(t, page)
	fd := fd(f) // File.Fd changes the file's mode each time
	for _, n := range []int{1, smallOps, 100, 3000} {
		reqs := make([]Request, n)
		fill := func() {
			for i := range reqs {
				reqs[i] = Request{FD: fd, Buf: page, Len: 16, Offset: int64(i)}
			}
			reqs[n/2].Device = int32(n % 2) // one unresolvable among many
		}
		steady(t, "Run", func() {
			fill()
			if _, err := r.Run(engine.Read, reqs); err != nil {
				t.Fatal(err)
			}
		})
		steady(t, "Submit+Wait", func() {
			fill()
			h, err := r.Submit(engine.Read, reqs)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Wait(h); err != nil {
				t.Fatal(err)
			}
		})
		steady(t, "Submit+Destroy", func() {
			h, err := r.Submit(engine.Write, reqs)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Destroy(h); err != nil {
				t.Fatal(err)
			}
		})
	}
	steady(t, "Transfer", func() {
		if n, err := r.Transfer(engine.Read, fd, 0, page, 0, 16, 0); n != 16 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	})
	steady(t, "Register+Deregister", func() {
		e.register(0, page, page)
		e.register(0, page, page)
		e.deregister(0, page, page)
		e.deregister(0, page, page)
	})
	steady(t, "Open+Close", func() {
		e.open(1)
		_ = e.Close(1)
	})
}

func TestFailingCallsAllocateNothingEither(t *testing.T) {
	r := newRig(t, withConnector(vendor{find: func(int) (int, error) { return 0, syscall.ENODEV }}))
	r.open(0)
	r.register(0, page, page)
	f := newFile(t, 10)
	fd := fd(f)
	steady(t, "Transfer", func() {
		_, _ = r.Transfer(engine.Read, -1, 0, page, 0, 16, 0)
		_, _ = r.Transfer(engine.Read, fd, 0, page, 0, 16, 0) // short
		_, _ = r.Transfer(engine.Read, fd, 0, 9*page, 0, 16, 0)
	})
	steady(t, "the rest", func() {
		_ = r.Open(9)
		_ = r.Close(7)
		_, _ = r.FindDevice(1)
		_, _ = r.Register(0, page, 2*page)
		_ = r.Deregister(0, 9*page, page)
		_, _ = r.Wait(12345)
		_ = r.Destroy(0)
	})
}
