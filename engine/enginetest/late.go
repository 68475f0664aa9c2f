package enginetest

import (
	"fmt"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

// lateRun holds each transfer of a batch in turn: Run must outlast it.
func lateRun(t *testing.T, make_ New) {
	late(t, make_, func(s *stage, ops []engine.Op) func() {
		return func() { s.sync(engine.Read, ops) }
	})
}

// lateWait is the same for Wait.
func lateWait(t *testing.T, make_ New) {
	late(t, make_, func(s *stage, ops []engine.Op) func() {
		b := s.submit(engine.Read, ops)
		return func() { s.Wait(b) }
	})
}

func late(t *testing.T, make_ New, start func(*stage, []engine.Op) func()) {
	s := newStage(t, make_, 2)
	for _, n := range []int{1, 2, 6} {
		for held := range n {
			s.script.Reset()
			barrier := fault.NewBarrier()
			ops := s.heavy(n)
			s.script.Add(fault.On(engine.Read).At(ops[held].Off).Late(barrier))
			returned := behind(start(s, ops))
			barrier.WaitParked(1)
			settle()
			select {
			case <-returned:
				t.Errorf("returned with op %d of %d in progress", held, n)
			default:
			}
			barrier.Release()
			<-returned
			wantAll(t, fmt.Sprintf("op %d of %d late", held, n), ops)
		}
	}
}
