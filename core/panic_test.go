package core

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"libphoenix/engine"
)

// wantPanic fails unless f panics; the C border contains it.
func wantPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Fatalf("%s: no panic came through", what)
		}
	}()
	f()
}

// brittle panics in the engine call that is named.
type brittle struct {
	engine.Engine
	in *atomic.Value // string
}

func (e brittle) fall(call string) {
	if e.in.Load() == call {
		panic("engine: " + call)
	}
}

func (e brittle) Begin(b *engine.Batch, o engine.Order) { e.fall("Begin"); e.Engine.Begin(b, o) }

func (e brittle) Run(b *engine.Batch) {
	if e.in.Load() == "Run" {
		e.Abandon(b) // an engine retires the ticket before it panics
	}
	e.fall("Run")
	e.Engine.Run(b)
}

func (e brittle) Submit(b *engine.Batch) error {
	if e.in.Load() == "Submit" {
		e.Abandon(b)
	}
	e.fall("Submit")
	return e.Engine.Submit(b)
}

func TestPanicBetweenGateEntryAndExitLeaksNothing(t *testing.T) {
	var in atomic.Value
	in.Store("")
	log := &shaky{max: LevelDebug}
	r := newRig(t, withLog(log), withEngine(func(e engine.Engine) engine.Engine { return brittle{e, &in} }))
	r.open(0)
	r.register(0, page, page)
	f := newFile(t, page)
	fd := fd(f)
	reqs := func() []Request {
		out := make([]Request, 20)
		for i := range out {
			out[i] = Request{FD: fd, Buf: page, Len: 16, Result: 77}
		}
		return out
	}
	for _, call := range []string{"Begin", "Run", "Submit"} {
		in.Store(call)
		if call != "Submit" {
			wantPanic(t, "Run, panic in "+call, func() { _, _ = r.Run(engine.Read, reqs()) })
		}
		if call != "Run" {
			wantPanic(t, "Submit, panic in "+call, func() { _, _ = r.Submit(engine.Read, reqs()) })
		}
		in.Store("")
		r.checkIdle()
	}

	// In the logger: while an unresolvable request is reported, with a gate
	// entered for the one before it.
	bad := reqs()
	bad[10].Buf = 9 * page
	log.panics.Store(true)
	wantPanic(t, "Run, panic in the logger", func() { _, _ = r.Run(engine.Read, bad) })
	wantPanic(t, "Submit, panic in the logger", func() { _, _ = r.Submit(engine.Read, bad) })
	// After the I/O.
	late := reqs()
	late[3].FD = -1
	wantPanic(t, "Run, panic while a failure is reported", func() { _, _ = r.Run(engine.Read, late) })
	wantPanic(t, "Transfer, panic while a short read is reported", func() {
		_, _ = r.Transfer(engine.Read, fd, 0, page, 0, 100, page-50)
	})
	h, err := r.Submit(engine.Read, late) // its Done runs on a helper or in Wait; the engine contains it
	if err != nil {
		t.Fatal(err)
	}
	if failed, err := r.Wait(h); failed != 1 || err != nil {
		t.Fatalf("Wait = %d, %v", failed, err)
	}
	log.panics.Store(false)
	r.checkIdle()

	// In the allocator.
	mapMem := r.arrays.mapMem
	r.arrays.mapMem = func(uintptr) unsafe.Pointer { panic("allocator") }
	big := make([]Request, 50_000)
	wantPanic(t, "Run, panic in the allocator", func() { _, _ = r.Run(engine.Read, big) })
	wantPanic(t, "Submit, panic in the allocator", func() { _, _ = r.Submit(engine.Read, big) })
	r.arrays.mapMem = mapMem
	r.checkIdle()

	// Tickets: an async batch starts only if every earlier one is retired.
	h, err = r.Submit(engine.Read, reqs())
	if err != nil {
		t.Fatal(err)
	}
	if failed, err := r.Wait(h); failed != 0 || err != nil {
		t.Fatalf("Wait = %d, %v", failed, err)
	}
	r.deregister(0, page, page)
}

// shaky is a Logger that panics when told to.
type shaky struct {
	max    Level
	panics atomic.Bool
}

func (s *shaky) Enabled(at Level) bool { return at <= s.max }
func (s *shaky) Event(Event) {
	if s.panics.Load() {
		panic("logger")
	}
}

func TestPanicInSingleTransferLeavesTheGate(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, page, page)
	r.io = panicIO{}
	wantPanic(t, "Transfer", func() { _, _ = r.Transfer(engine.Read, 0, 0, page, 0, 16, 0) })
	r.deregister(0, page, page)
}

type panicIO struct{ engine.IO }

func TestPanicOfANodeLeavesTheDeviceUsable(t *testing.T) {
	r := newRig(t)
	boom := func() error { panic("node") }
	r.nodes.onOpen = boom
	wantPanic(t, "Open", func() { _ = r.Open(0) })
	r.nodes.onOpen = nil
	r.open(0)

	r.nodes.onMap = func(DevAddr) error { return boom() }
	wantPanic(t, "Register", func() { _, _ = r.Register(0, page, page) })
	r.nodes.onMap = nil
	r.register(0, page, page)

	r.nodes.onUnmap = func(DevAddr) error { return boom() }
	wantPanic(t, "Deregister", func() { _ = r.Deregister(0, page, page) })
	r.checkIdle()
	r.nodes.onUnmap = func(DevAddr) error { t.Error("second UNMAP"); return nil }
	r.deregister(0, page, page) // only munmap: nobody knows whether UNMAP was done

	r.nodes.onUnmap = nil
	r.register(0, page, page)
	r.nodes.onMunmap = func(HostAddr) error { return boom() }
	wantPanic(t, "Deregister", func() { _ = r.Deregister(0, page, page) })
	r.nodes.onMunmap = nil
	r.deregister(0, page, page)

	r.nodes.onClose = boom
	wantPanic(t, "Close", func() { _ = r.Close(0) })
	r.nodes.onClose = nil
	r.nodes.closes.Add(-1)
	if err := r.Close(0); err != nil {
		t.Fatalf("Close after a Close that panicked: %v", err)
	}
}

func TestPanicWhileTheEngineIsMadeIsNotRemembered(t *testing.T) {
	first := true
	r := newRig(t, withEngine(func(e engine.Engine) engine.Engine {
		if first {
			first = false
			panic("no engine")
		}
		return e
	}))
	wantPanic(t, "EngineName", func() { r.EngineName() })
	if got := r.EngineName(); got != "sync" {
		t.Fatalf("EngineName %q", got)
	}
}
