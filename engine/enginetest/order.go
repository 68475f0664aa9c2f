package enginetest

import (
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

// Each batch of these stories reads one block of one sparse file at an offset
// of its own, so that the script's trace tells them apart.

const block = 4096

// stage is a rig whose calls are recorded, and its file.
type stage struct {
	*rig
	f   file
	mem []byte
	big []byte // of heavy
}

func newStage(t *testing.T, make_ New, helpers int) *stage {
	r := newRig(t, make_, helpers, new(fault.Script).Record())
	return &stage{rig: r, f: sparse(t, 1<<30), mem: memory(t, 64*block)}
}

func (s *stage) op(place int) []engine.Op {
	return []engine.Op{op(s.f.fd, s.mem[:block], int64(place)*block)}
}

// heavy is n ops, at most 8, each of them more than one claim of any transport.
func (s *stage) heavy(n int) []engine.Op {
	const lenBytes = 4 << 20
	if s.big == nil {
		s.big = memory(s.t, 8*lenBytes)
	}
	return blocks(s.f.fd, s.big[:n*lenBytes], lenBytes, 1<<28)
}

// hold keeps the calls at a place until the barrier is released.
func (s *stage) hold(place int) *fault.Barrier {
	b := fault.NewBarrier()
	s.t.Cleanup(b.Release)
	s.script.Add(fault.On(engine.Read).At(int64(place) * block).Late(b))
	return b
}

// begun reports whether a call at the place has begun.
func (s *stage) begun(place int) bool {
	for _, e := range s.script.Events() {
		if e.Off == int64(place)*block {
			return true
		}
	}
	return false
}

func (s *stage) mustNotHaveBegun(place int, why string) {
	s.t.Helper()
	settle()
	if s.begun(place) {
		s.t.Errorf("the batch at place %d began %s", place, why)
	}
}

// behind runs call in a goroutine and returns a channel that closes at its end.
func behind(call func()) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		call()
	}()
	return ended
}

func sideBySide(t *testing.T, make_ New) {
	s := newStage(t, make_, 1)
	all := s.hold(1)
	a := behind(func() { s.sync(engine.Read, s.op(1)) })
	b := behind(func() { s.sync(engine.Read, s.op(1)) })
	all.WaitParked(2)
	all.Release()
	<-a
	<-b
	// The same behind an async batch: both start when it is over.
	first, both := s.hold(2), s.hold(3)
	async := s.submit(engine.Read, s.op(2))
	first.WaitParked(1)
	a = behind(func() { s.sync(engine.Read, s.op(3)) })
	b = behind(func() { s.sync(engine.Read, s.op(3)) })
	s.mustNotHaveBegun(3, "before the async batch was complete")
	first.Release()
	both.WaitParked(2)
	both.Release()
	<-a
	<-b
	s.Wait(async)
}

func asyncAfterSync(t *testing.T, make_ New) {
	s := newStage(t, make_, 2)
	held := s.hold(1)
	sync := behind(func() { s.sync(engine.Read, s.op(1)) })
	held.WaitParked(1)
	async := s.submit(engine.Read, s.op(2))
	waited := behind(func() { s.Wait(async) })
	s.mustNotHaveBegun(2, "before the earlier sync batch was complete")
	held.Release()
	<-sync
	<-waited
	wantAll(t, "async", async.Ops)
}

func asyncAfterBegunSync(t *testing.T, make_ New) {
	s := newStage(t, make_, 2)
	for place, end := range []func(*engine.Batch){s.Run, s.Abandon} {
		var first engine.Batch
		s.Begin(&first, engine.Sync)
		async := s.submit(engine.Read, s.op(place))
		s.mustNotHaveBegun(place, "before the begun sync batch was over")
		first.Ops = s.op(10)
		end(&first)
		s.Wait(async)
		wantAll(t, "async", async.Ops)
	}
}

func syncAfterAsync(t *testing.T, make_ New) {
	s := newStage(t, make_, 2)
	held := s.hold(1)
	async := s.submit(engine.Read, s.op(1))
	held.WaitParked(1)
	sync := behind(func() { s.sync(engine.Read, s.op(2)) })
	s.mustNotHaveBegun(2, "before the earlier async batch was complete")
	held.Release()
	<-sync
	s.Wait(async)
}

func syncAfterBegunAsync(t *testing.T, make_ New) {
	s := newStage(t, make_, 2)
	var first engine.Batch
	s.Begin(&first, engine.Async)
	sync := behind(func() { s.sync(engine.Read, s.op(2)) })
	s.mustNotHaveBegun(2, "before the earlier async batch was submitted")
	first.Ops = s.op(1)
	if err := s.Submit(&first); err != nil {
		t.Fatal(err)
	}
	<-sync
	s.Wait(&first)

	s.Begin(&first, engine.Async)
	sync = behind(func() { s.sync(engine.Read, s.op(3)) })
	s.mustNotHaveBegun(3, "before the earlier async batch was abandoned")
	s.Abandon(&first)
	<-sync
}

func oneAtATime(t *testing.T, make_ New) {
	s := newStage(t, make_, 3)
	held := s.hold(1)
	first := s.submit(engine.Read, s.op(1))
	second := s.submit(engine.Read, s.op(2))
	waited := behind(func() { s.Wait(second) })
	held.WaitParked(1)
	s.mustNotHaveBegun(2, "beside an earlier async batch")
	held.Release()
	<-waited
	s.Wait(first)
}
