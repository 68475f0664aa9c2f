package enginetest

import (
	"runtime"
	"syscall"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

func abandoned(t *testing.T, make_ New) {
	r := newRig(t, make_, 1, nil)
	f := newFile(t, t.TempDir(), noise(9, block))
	mem := memory(t, block)
	var b engine.Batch
	for _, o := range []engine.Order{engine.Sync, engine.Async, engine.Sync} {
		r.Begin(&b, o)
		r.Abandon(&b)
	}
	r.both(func(name string, do func(engine.Kind, []engine.Op)) {
		ops := []engine.Op{op(f.fd, mem, 0)}
		do(engine.Read, ops)
		wantOp(t, name, 0, ops[0], block, mem, f.data)
	})
}

func submitEmpty(t *testing.T, make_ New) {
	r := newRig(t, make_, 1, nil)
	var b engine.Batch
	r.Begin(&b, engine.Async)
	if err := r.Submit(&b); err != syscall.EINVAL {
		t.Errorf("submit of no ops: %v, want %v", err, syscall.EINVAL)
	}
	r.sync(engine.Read, nil) // the ticket is retired: this does not wait
	if n := r.AsyncInFlight(); n != 0 {
		t.Errorf("%d in flight, want 0", n)
	}
}

func noWaiter(t *testing.T, make_ New) {
	r := newRig(t, make_, 1, nil)
	f := newFile(t, t.TempDir(), noise(10, 40*block))
	mem := memory(t, 40*block)
	for _, n := range []int{1, 40} {
		completed := make(chan struct{})
		b := engine.Batch{Done: func(*engine.Batch) { close(completed) }}
		r.Begin(&b, engine.Async)
		b.Ops = r.apart(blocks(f.fd, mem[:n*block], block, 0))
		if err := r.Submit(&b); err != nil {
			t.Fatal(err)
		}
		<-completed
		wantAll(t, "without a waiter", b.Ops)
		r.Wait(&b)
	}
}

func waitElsewhere(t *testing.T, make_ New) {
	r := newRig(t, make_, 1, nil)
	f := newFile(t, t.TempDir(), noise(11, 8*block))
	mem := memory(t, 8*block)
	b := r.submit(engine.Read, blocks(f.fd, mem, block, 0))
	<-behind(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		r.Wait(b)
	})
	wantAll(t, "waited elsewhere", b.Ops)
}

func slotsFree(t *testing.T, make_ New) {
	r := newRig(t, make_, 2, nil)
	f := newFile(t, t.TempDir(), noise(12, block))
	mem := memory(t, block)
	var all []*engine.Batch
	for range 4 {
		for range engine.MaxAsync {
			all = append(all, r.submit(engine.Read, []engine.Op{op(f.fd, mem, 0)}))
		}
		for <-r.counts != 0 || r.AsyncInFlight() != 0 { // told 0: every slot is free, though nobody has waited
		}
	}
	for _, b := range all {
		r.Wait(b)
		wantAll(t, "waited late", b.Ops)
	}
}

func seventeenth(t *testing.T, make_ New) {
	s := newStage(t, make_, 1)
	held := s.hold(0)
	var all []*engine.Batch
	for i := range engine.MaxAsync {
		all = append(all, s.submit(engine.Read, s.op(i)))
	}
	for range 3 {
		var b engine.Batch
		called := false
		b.Done = func(*engine.Batch) { called = true }
		s.Begin(&b, engine.Async)
		b.Ops = s.op(100)
		if err := s.Submit(&b); err != syscall.EBUSY {
			t.Fatalf("submit with %d in flight: %v, want %v", s.AsyncInFlight(), err, syscall.EBUSY)
		}
		if called {
			t.Error("Done was called for a refused batch")
		}
	}
	if n := s.AsyncInFlight(); n != engine.MaxAsync {
		t.Errorf("%d in flight, want %d", n, engine.MaxAsync)
	}
	held.Release()
	for _, b := range all {
		s.Wait(b)
	}
	if s.begun(100) {
		t.Error("a refused batch was carried out")
	}
	s.async(engine.Read, s.op(100)) // there is room again
	for i := 1; i <= engine.MaxAsync; i++ {
		if got := <-s.counts; got != i {
			t.Fatalf("OnAsync was told %d, want %d", got, i)
		}
	}
}

func waiterHelps(t *testing.T, make_ New) {
	s := newStage(t, make_, 1)
	held := fault.NewBarrier()
	defer held.Release()
	s.script.Add(fault.On(engine.Read).Nth(1).Late(held))
	b := s.submit(engine.Read, s.heavy(8))
	held.WaitParked(1) // the only helper is stuck in the first op
	waited := behind(func() { s.Wait(b) })
	s.script.WaitEnded(7) // the waiter did the others
	select {
	case <-waited:
		t.Error("Wait returned while a transfer was in progress")
	default:
	}
	held.Release()
	<-waited
	wantAll(t, "helped", b.Ops)
}

func waiterHelpsOthers(t *testing.T, make_ New) {
	s := newStage(t, make_, 1)
	held := fault.NewBarrier()
	defer held.Release()
	s.script.Add(fault.On(engine.Read).Nth(1).Late(held))
	first := s.submit(engine.Read, s.heavy(8))
	second := s.submit(engine.Read, s.op(2))
	held.WaitParked(1)
	waited := behind(func() { s.Wait(second) }) // behind first in the queue
	s.script.WaitEnded(7)
	held.Release()
	<-waited
	s.Wait(first)
	wantAll(t, "first", first.Ops)
	wantAll(t, "second", second.Ops)
}

func doneFirst(t *testing.T, make_ New) {
	s := newStage(t, make_, 1)
	inside, leave := make(chan struct{}), make(chan struct{})
	b := engine.Batch{Done: func(*engine.Batch) { close(inside); <-leave }}
	s.Begin(&b, engine.Async)
	b.Ops = s.op(1)
	if err := s.Submit(&b); err != nil {
		t.Fatal(err)
	}
	<-inside
	if n := s.AsyncInFlight(); n != 1 {
		t.Errorf("%d in flight inside Done, want 1", n)
	}
	waited := behind(func() { s.Wait(&b) })
	next := s.submit(engine.Read, s.op(2))
	s.mustNotHaveBegun(2, "before Done of the earlier batch returned")
	select {
	case <-waited:
		t.Error("Wait returned before Done did")
	default:
	}
	close(leave)
	<-waited
	s.Wait(next)
}

func closeDrains(t *testing.T, make_ New) {
	s := newStage(t, make_, 2)
	held := s.hold(1)
	var all []*engine.Batch
	for i := range 3 {
		all = append(all, s.submit(engine.Read, s.op(i+1)))
	}
	held.WaitParked(1)
	s.closed = true
	closed := behind(s.Close)
	settle()
	select {
	case <-closed:
		t.Error("Close returned while a transfer was in progress")
	default:
	}
	held.Release()
	<-closed
	for _, b := range all {
		wantAll(t, "closed", b.Ops)
	}
}
