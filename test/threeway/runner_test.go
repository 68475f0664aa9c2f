package threeway

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// runner is a way to carry out a batch.
type runner struct {
	name string
	do   func(k engine.Kind, o engine.Order, ops []engine.Op)
}

// run carries out ops and leaves their results in them.
func (r runner) run(k engine.Kind, o engine.Order, ops []engine.Op) {
	for i := range ops {
		ops[i].Result = unset
	}
	hung := time.AfterFunc(hungAfter, func() {
		panic(fmt.Sprintf("hung: %s, kind %d, order %d, %d ops, first %+v", r.name, k, o, len(ops), ops[0]))
	})
	defer hung.Stop()
	r.do(k, o, ops)
}

// unset is no result that a request can have.
const unset = -1 << 62

// plain is the reference.
func plain() runner {
	return runner{"plain loop", func(k engine.Kind, _ engine.Order, ops []engine.Op) {
		for i := range ops {
			ops[i].Result = plainly(k, &ops[i])
		}
	}}
}

// plainly is what docs/abi.md says of one request: zero bytes do not look at
// the fd, a chunk is 1 GiB, EINTR is tried again, a short count goes on until
// a call brings nothing, progress wins over a later error.
func plainly(k engine.Kind, op *engine.Op) int64 {
	number := uintptr(unix.SYS_PREAD64)
	if k == engine.Write {
		number = unix.SYS_PWRITE64
	}
	done := uint64(0)
	for done < op.Len {
		n, _, errno := unix.Syscall6(number, uintptr(op.FD), uintptr(op.Addr)+uintptr(done),
			uintptr(min(op.Len-done, 1<<30)), uintptr(op.Off)+uintptr(done), 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 && done == 0 {
			return -int64(errno)
		}
		if errno != 0 || n == 0 {
			break
		}
		done += uint64(n)
	}
	return int64(done)
}

// newRunners makes the engines under test, which end with t. Of io_uring there
// are two: one with the usual window, one so small that it must be refilled.
func newRunners(t *testing.T) []runner {
	t.Helper()
	tell := func(reason string) { t.Errorf("an engine reports: %s", reason) }
	all := []runner{engineOf(t, "sync", engine.NewSync(engine.Config{Helpers: 2, Notice: tell}))}
	for name, cfg := range map[string]engine.Config{
		"io_uring":          {Helpers: 2, Notice: tell},
		"io_uring, depth 8": {Helpers: 3, Depth: 8, Notice: tell},
	} {
		e, err := engine.NewUring(cfg)
		if err != nil {
			t.Run(name, func(t *testing.T) { skip(t, &lack{"io_uring", err}) })
			continue
		}
		all = append(all, engineOf(t, name, e))
	}
	return all
}

func engineOf(t *testing.T, name string, e engine.Engine) runner {
	t.Cleanup(e.Close)
	b := new(engine.Batch) // again and again, as core does
	return runner{name, func(k engine.Kind, o engine.Order, ops []engine.Op) {
		e.Begin(b, o)
		b.Ops, b.Kind = ops, k
		if o == engine.Sync {
			e.Run(b)
			return
		}
		if err := e.Submit(b); err != nil {
			panic(fmt.Sprintf("%s: submit of %d ops with nothing else queued: %v", name, len(ops), err))
		}
		e.Wait(b)
	}}
}
