package engine_test

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"libphoenix/engine"
	"libphoenix/engine/fault"
	"libphoenix/internal/uring"
	"libphoenix/internal/uring/uringtest"
)

// ringFDs is how many fds of this process are rings.
func ringFDs(t testing.TB) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.Contains(to, "[io_uring]") {
			n++
		}
	}
	return n
}

// TestFiveHundredCallersShareFewRings: the fds of all rings together stay
// within 64 while 500 threads call at once, and none is left after Close.
func TestFiveHundredCallersShareFewRings(t *testing.T) {
	const threads, rounds, n = 500, 4, 40
	for _, helpers := range []int{1, 64} {
		before := goleak.IgnoreCurrent()
		old := ringFDs(t)
		e := newUring(t, engine.Config{Helpers: helpers})
		fd, data := noisy(t, n*block)
		var group sync.WaitGroup
		start := make(chan struct{})
		for range threads {
			mem := pages(t, n*block)
			group.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				<-start
				for round := range rounds {
					clear(mem)
					b := engine.Batch{Ops: benchOps(fd, mem, n)}
					e.Begin(&b, engine.Order(round%2))
					if round%2 == 0 {
						e.Run(&b)
					} else if e.Submit(&b) == nil {
						e.Wait(&b)
					} else {
						continue // the slots are taken
					}
					check(t, &b)
					if string(mem) != string(data) {
						t.Error("wrong data")
					}
				}
			})
		}
		ended := make(chan struct{})
		go func() { defer close(ended); group.Wait() }()
		close(start)
		most := 0
		for over := false; !over; {
			select {
			case <-ended:
				over = true
			default:
			}
			most = max(most, ringFDs(t)-old)
		}
		if most > 64 {
			t.Errorf("%d helpers: %d ring fds, want 64 at most", helpers, most)
		}
		e.Close()
		if left := ringFDs(t) - old; left != 0 {
			t.Errorf("%d helpers: %d ring fds left after Close", helpers, left)
		}
		goleak.VerifyNone(t, before)
	}
}

// Kernels before 6.3 cannot do without a ring's fd: then helpers beyond the
// limit use plain system calls, and say nothing.
func TestHelpersWithoutRoomForAnFDHaveNoRing(t *testing.T) {
	const helpers = 64
	rings := uringtest.New(through(kernel{}))
	rings.Features = uring.FeatSingleMmap
	var notices atomic.Int32
	e, err := engine.NewUring(engine.Config{Rings: rings, Helpers: helpers, Notice: func(string) { notices.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	fd, data := noisy(t, 2000*block)
	for range 20 {
		readBack(t, e, fd, data, 2000)
	}
	if n := rings.FDs(); n > 64 {
		t.Errorf("%d ring fds, want 64 at most", n)
	}
	e.Close()
	if n := rings.Rings(); n != 0 || notices.Load() != 0 {
		t.Errorf("%d rings left after Close, %d notices", n, notices.Load())
	}
}

// TestCallerWithoutARingLeavesItsBatchToTheHelpers holds every caller ring busy.
func TestCallerWithoutARingLeavesItsBatchToTheHelpers(t *testing.T) {
	script := new(fault.Script)
	late := fault.NewBarrier()
	defer late.Release()
	rings := uringtest.New(trialFree(through(script)))
	e := withRings(t, rings, engine.Config{IO: script})
	fd, data := noisy(t, 40*block)
	script.Add(fault.On(engine.Read).At(0).Late(late))
	most := engine.CallerRings()
	var group sync.WaitGroup
	for i := range most {
		mem := pages(t, 2*block)
		group.Go(func() { runSync(e, engine.Read, benchOps(fd, mem, 2)) })
		late.WaitParked(i + 1)
	}
	mem := pages(t, 40*block)
	for _, n := range []int{2, 39} { // from the second block on
		ops := benchOps(fd, mem, n)
		for i := range ops {
			ops[i].Off += block
		}
		runSync(e, engine.Read, ops) // not held up by the others
		check(t, &engine.Batch{Ops: ops})
		if string(mem[:n*block]) != string(data[block:(n+1)*block]) {
			t.Error("wrong data")
		}
	}
	late.Release()
	group.Wait()
	readBack(t, e, fd, data, 40)
}

// No ring may be had: for want of fds, say. Every thread goes on without, one
// notice tells it, and rings come back when they can be had again.
func TestCallersGoOnWithoutRings(t *testing.T) {
	var short atomic.Bool
	var setups, notices atomic.Int32
	k := &uringtest.Tamper{Kernel: uring.Linux{}, OnSetup: func(uint32, uint32) syscall.Errno {
		setups.Add(1)
		if short.Load() {
			return syscall.EMFILE
		}
		return 0
	}}
	before := ringFDs(t)
	e := newUring(t, engine.Config{Rings: k, Helpers: 2, Notice: func(string) { notices.Add(1) }})
	short.Store(true)
	fd, data := noisy(t, 300*block)
	load := func() {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 200 {
					readBack(t, e, fd, data, 3)
				}
				readBack(t, e, fd, data, 300)
			})
		}
		group.Wait()
	}
	load()
	if n := notices.Load(); n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
	if n := setups.Load(); n > 40 {
		t.Errorf("a ring was tried %d times in vain for some thousand batches", n)
	}
	short.Store(false)
	load()
	e.Close()
	if n := ringFDs(t) - before; n != 0 {
		t.Errorf("%d ring fds left after Close", n)
	}
}
