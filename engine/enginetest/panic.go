package enginetest

import (
	"fmt"
	"syscall"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

const eio = -int64(syscall.EIO)

// healthy checks that the engine works on after a contained panic.
func (s *stage) healthy(notices int32) {
	s.t.Helper()
	if got := s.notices.Load(); got != notices {
		s.t.Errorf("%d notices, want %d", got, notices)
	}
	s.script.Reset()
	s.both(func(name string, do func(engine.Kind, []engine.Op)) {
		for _, ops := range [][]engine.Op{s.op(1), blocks(s.f.fd, s.mem, block, 0), s.heavy(4)} {
			do(engine.Read, ops)
			wantAll(s.t, "after a panic, "+name, ops)
		}
	})
}

func callerPanic(t *testing.T, make_ New) {
	s := newStage(t, make_, 1)
	notices := int32(0)
	for _, n := range []int{1, 2, 8} {
		for bad := range n {
			s.script.Reset()
			s.script.Add(fault.On(engine.Read).At(int64(bad) * block).Panic("scripted"))
			ops := blocks(s.f.fd, s.mem[:n*block], block, 0)
			s.sync(engine.Read, ops)
			notices++
			for i := range ops {
				got := ops[i].Result
				if i < bad && got != block || i == bad && got != eio || i > bad && got != block && got != eio {
					t.Errorf("op %d of %d, panic at %d: result %d", i, n, bad, got)
				}
			}
		}
	}
	s.healthy(notices)
}

func helperPanic(t *testing.T, make_ New) {
	s := newStage(t, make_, 1)
	notices := int32(0)
	const n = 4
	for bad := range n {
		s.script.Reset()
		ops := s.heavy(n)
		s.script.Add(fault.On(engine.Read).At(ops[bad].Off).Panic(fmt.Errorf("scripted")))
		completed := make(chan struct{})
		b := engine.Batch{Done: func(*engine.Batch) { close(completed) }}
		s.Begin(&b, engine.Async)
		b.Ops = ops
		if err := s.Submit(&b); err != nil {
			t.Fatal(err)
		}
		<-completed // nobody waited: a helper did it all
		s.Wait(&b)
		notices++
		for i := range ops {
			want := int64(ops[i].Len)
			if i == bad {
				want = eio
			}
			if got := ops[i].Result; got != want {
				t.Errorf("op %d, panic at %d: result %d, want %d", i, bad, got, want)
			}
		}
	}
	// In a slice of a big op: the prefix before it counts.
	s.script.Reset()
	s.script.Add(fault.On(engine.Read).At(8 << 20).Panic("scripted"))
	ops := []engine.Op{op(s.f.fd, memory(t, 40<<20), 0)}
	s.async(engine.Read, ops)
	if got, want := ops[0].Result, int64(8<<20); got != want {
		t.Errorf("panic in the second slice: result %d, want %d", got, want)
	}
	s.healthy(notices + 1)
}

func callbackPanic(t *testing.T, make_ New) {
	s := newStage(t, make_, 1)
	b := engine.Batch{Done: func(*engine.Batch) { panic("scripted") }}
	s.Begin(&b, engine.Async)
	b.Ops = s.op(1)
	if err := s.Submit(&b); err != nil {
		t.Fatal(err)
	}
	s.Wait(&b)
	wantAll(t, "with a bad callback", b.Ops)
	if n := s.AsyncInFlight(); n != 0 {
		t.Errorf("%d in flight, want 0", n)
	}
	s.healthy(1)
}
