package enginetest

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"libphoenix/engine"
)

func noAllocations(t *testing.T, make_ New) {
	r := newRig(t, make_, 2, nil)
	const most = 500
	f := newFile(t, t.TempDir(), noise(13, most*block))
	mem := memory(t, most*block)
	for i, n := range []int{1, 8, most, 8, most} {
		r.merges = i > 2
		for _, o := range []engine.Order{engine.Sync, engine.Async} {
			b := engine.Batch{Ops: r.apart(blocks(f.fd, mem[:n*block], block, 0))}
			once := func() {
				r.Begin(&b, o)
				if o == engine.Sync {
					r.Run(&b)
					return
				}
				if err := r.Submit(&b); err != nil {
					t.Error(err)
				}
				r.Wait(&b)
			}
			for range 10 { // helpers start here
				once()
			}
			if got := testing.AllocsPerRun(200, once); got != 0 {
				t.Errorf("order %d, n %d, merged %t: %v allocations for each batch, want 0", o, n, r.merges, got)
			}
		}
	}
}

func threads(t *testing.T, make_ New) {
	before := goleak.IgnoreCurrent()
	const helpers = 3
	r := newRig(t, make_, helpers, nil)
	f := newFile(t, t.TempDir(), noise(14, block))
	mem := memory(t, block)
	r.sync(engine.Read, []engine.Op{op(f.fd, mem, 0)})
	if got := started(); got != 0 {
		t.Errorf("%d goroutines of the engine after a batch of one op, want 0", got)
	}
	r.async(engine.Read, []engine.Op{op(f.fd, mem, 0)})
	if got := started(); got != helpers {
		t.Errorf("%d goroutines of the engine, want %d", got, helpers)
	}
	r.Close()
	r.closed = true
	if err := goleak.Find(before); err != nil {
		t.Error(fmt.Errorf("after Close: %w", err))
	}
}

// started counts the goroutines that package engine has started.
func started() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte("created by libphoenix/engine.("))
}
