package engine_test

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
	"libphoenix/engine/fault"
	"libphoenix/internal/need"
	"libphoenix/internal/uring"
	"libphoenix/internal/uring/uringtest"
)

// pass lets every other thread run for a while.
func pass() {
	for range 200 {
		runtime.Gosched()
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// failing is an Enter that fails for good from the given call on, the trial's
// being number 0, until it is mended.
type failing struct {
	from   int32
	errno  syscall.Errno
	calls  atomic.Int32
	failed atomic.Int32
	mended atomic.Bool
}

func (f *failing) enter(submit, _ uint32) (uint32, syscall.Errno) {
	if f.calls.Add(1)-1 < f.from || f.mended.Load() {
		return submit, 0
	}
	f.failed.Add(1)
	return 0, f.errno
}

// TestRingFailureWaitsForTheKernel is the promise that matters most: whatever
// becomes of a ring, nothing returns while the kernel can still write the
// caller's memory. Some transfers of the batch are held in the kernel, every
// call on the ring fails, and Run or Wait must outlast them.
func TestRingFailureWaitsForTheKernel(t *testing.T) {
	const depth, n = 8, 40
	for _, async := range []bool{false, true} {
		for held := range depth {
			for from := range int32(3) {
				t.Run(fmt.Sprintf("async=%v/held=%d/from=%d", async, held, from), func(t *testing.T) {
					script := new(fault.Script)
					late := fault.NewBarrier()
					defer late.Release()
					rings := uringtest.New(trialFree(through(script)))
					broken := &failing{from: 2 + from, errno: syscall.EBADF}
					var notices atomic.Int32
					e := withRings(t, &uringtest.Tamper{Kernel: rings, OnEnter: broken.enter}, engine.Config{
						IO: script, Depth: depth, Notice: func(string) { notices.Add(1) },
					})
					fd, data := noisy(t, n*block)
					script.Add(fault.On(engine.Read).At(int64(held * block)).Nth(1).Late(late))
					mem := pages(t, n*block)
					b := engine.Batch{Ops: benchOps(fd, mem, n)}
					returned := make(chan struct{})
					if async {
						e.Begin(&b, engine.Async)
						if err := e.Submit(&b); err != nil {
							t.Fatal(err)
						}
						go func() { defer close(returned); e.Wait(&b) }()
					} else {
						go func() { defer close(returned); e.Begin(&b, engine.Sync); e.Run(&b) }()
					}
					late.WaitParked(1) // the kernel has the memory
					// The drain has failed a few times, unless the tail is asleep in
					// the last good call, or the transfer never got to a ring.
					for i := 0; i < 20 && broken.failed.Load() < 3; i++ {
						pass()
					}
					pass()
					select {
					case <-returned:
						t.Error("returned while the kernel could write the memory")
					default:
					}
					late.Release()
					<-returned
					check(t, &b)
					if !bytes.Equal(mem, data) {
						t.Error("wrong data")
					}
					if got := notices.Load(); got > 1 {
						t.Errorf("%d notices, want one at most", got)
					}
					broken.mended.Store(true)
					for range 40 { // past the rest: rings again
						readBack(t, e, fd, data, 3)
					}
				})
			}
		}
	}
}

// A ring that goes on refusing for a moment, for ever, with a transfer in the
// kernel: it is waited for, and then the ring is given up.
func TestEndlessRefusalWaitsForTheKernel(t *testing.T) {
	const depth, n = 8, 40
	for _, errno := range []syscall.Errno{syscall.EINTR, syscall.EAGAIN} {
		script := new(fault.Script)
		late := fault.NewBarrier()
		defer late.Release()
		rings := uringtest.New(trialFree(through(script)))
		refusing := &failing{from: 2, errno: errno}
		var notices atomic.Int32
		e := withRings(t, &uringtest.Tamper{Kernel: rings, OnEnter: refusing.enter}, engine.Config{
			IO: script, Depth: depth, Notice: func(string) { notices.Add(1) },
		})
		fd, data := noisy(t, n*block)
		script.Add(fault.On(engine.Read).At(3 * block).Nth(1).Late(late))
		mem := pages(t, n*block)
		ops := benchOps(fd, mem, n)
		returned := make(chan struct{})
		go func() { defer close(returned); runSync(e, engine.Read, ops) }()
		late.WaitParked(1)
		// More than a stall of calls, unless the transfer never got to a ring.
		for i := 0; i < 1000 && refusing.failed.Load() < 200; i++ {
			pass()
		}
		select {
		case <-returned:
			t.Error("returned while the kernel could write the memory")
		default:
		}
		late.Release()
		<-returned
		check(t, &engine.Batch{Ops: ops})
		if !bytes.Equal(mem, data) {
			t.Error("wrong data")
		}
		if n := notices.Load(); n != 1 {
			t.Errorf("%v: %d notices, want 1", errno, n)
		}
	}
}

// The same on the real kernel, with direct I/O in flight: a ring can be drained
// though no call on it works any more, since none has DEFER_TASKRUN.
func TestRealRingFailureIsDrained(t *testing.T) {
	const n, size = 64, 256 << 10
	plain, data := noisy(t, n*size)
	direct, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", plain), unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		need.Missing(t, need.ODirect, "open: %v", err)
	}
	defer unix.Close(direct)
	fd := int32(direct)
	for from := range int32(6) {
		broken := &failing{from: 1 + from, errno: syscall.EBADF}
		k := &watched{Kernel: uring.Linux{}, t: t}
		e := withRings(t, &uringtest.Tamper{Kernel: k, AfterEnter: func(_, _ uint32, errno syscall.Errno) syscall.Errno {
			if _, bad := broken.enter(1, 0); bad != 0 {
				return bad
			}
			return errno
		}, OnEnter: func(submit, _ uint32) (uint32, syscall.Errno) {
			if broken.failed.Load() > 0 {
				return 0, syscall.EBADF // and from then on not even made
			}
			return submit, 0
		}}, engine.Config{})
		mem := pages(t, n*size)
		b := engine.Batch{Ops: make([]engine.Op, n)}
		for i := range b.Ops {
			b.Ops[i] = engine.Op{FD: fd, Addr: addrOf(mem[i*size:]), Len: size, Off: int64(i * size), Group: uint32(i)}
		}
		e.Begin(&b, engine.Sync)
		e.Run(&b)
		for i := range b.Ops {
			if b.Ops[i].Result != size {
				t.Fatalf("failure at call %d, op %d: result %d, want %d", from, i, b.Ops[i].Result, size)
			}
		}
		if !bytes.Equal(mem, data) {
			t.Fatalf("failure at call %d: wrong data", from)
		}
	}
}

// A helper's ring that breaks costs its thread the ring and nobody anything.
func TestHelperRingFailureIsContained(t *testing.T) {
	var bad atomic.Bool
	var helperFails atomic.Int32
	var notices atomic.Int32
	k := &helperBreaker{Kernel: uring.Linux{}, bad: &bad, failed: &helperFails}
	e := withRings(t, k, engine.Config{Helpers: 2, Notice: func(string) { notices.Add(1) }})
	fd, data := noisy(t, 600*block)
	readBack(t, e, fd, data, 600)
	bad.Store(true)
	for range 50 {
		readBack(t, e, fd, data, 600)
	}
	if helperFails.Load() == 0 {
		need.Pointless(t, "a run in which a helper enters its ring")
	}
	if n := notices.Load(); n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
	bad.Store(false)
	for range 50 {
		readBack(t, e, fd, data, 600)
	}
}

// helperBreaker fails one Enter in two on rings known by index: the helpers'.
type helperBreaker struct {
	uring.Kernel
	bad    *atomic.Bool
	failed *atomic.Int32
}

func (k *helperBreaker) Enter(fd int, submit, minComplete, flags uint32) (int, syscall.Errno) {
	if flags&uring.EnterRegisteredRing != 0 && submit > 0 && k.bad.Load() && k.failed.Add(1)%2 == 0 {
		return -1, syscall.ENXIO
	}
	return k.Kernel.Enter(fd, submit, minComplete, flags)
}

// A panic is contained, and what was in flight is waited for.
func TestPanicWaitsForTheKernel(t *testing.T) {
	script := new(fault.Script)
	late := fault.NewBarrier()
	defer late.Release()
	rings := uringtest.New(trialFree(through(script)))
	notices := make(chan string, 8)
	e := withRings(t, rings, engine.Config{IO: script, Depth: 8, Notice: func(s string) { notices <- s }})
	fd, data := noisy(t, 6*block)
	script.Add(fault.On(engine.Read).At(0).Nth(1).Late(late), fault.On(engine.Read).At(3*block).Nth(1).Panic("scripted"))
	mem := pages(t, 6*block)
	ops := benchOps(fd, mem, 6)
	returned := make(chan struct{})
	go func() { defer close(returned); runSync(e, engine.Read, ops) }()
	late.WaitParked(1)
	<-notices // the panic has reached the lane
	pass()
	select {
	case <-returned:
		t.Error("returned while the kernel could write the memory")
	default:
	}
	late.Release()
	<-returned
	for i := range ops {
		want := int64(block)
		if i == 3 {
			want = -int64(syscall.EIO)
		}
		if ops[i].Result != want {
			t.Errorf("op %d: result %d, want %d", i, ops[i].Result, want)
		}
	}
	readBack(t, e, fd, data, 6)
}

// watched fails the test if a ring is unmapped or closed with a request in
// flight: it looks at the queues' counters as the ring itself does.
type watched struct {
	uring.Kernel
	t  *testing.T
	mu sync.Mutex
	// counters by address of the mapping: sq head, cq head
	heads map[*byte][2]*uint32
	p     map[int]*uring.Params
}

func (w *watched) Setup(entries uint32, p *uring.Params) (int, syscall.Errno) {
	fd, errno := w.Kernel.Setup(entries, p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.p == nil {
		w.p, w.heads = map[int]*uring.Params{}, map[*byte][2]*uint32{}
	}
	w.p[fd] = p
	return fd, errno
}

func (w *watched) Map(fd int, off int64, lenBytes int) ([]byte, syscall.Errno) {
	m, errno := w.Kernel.Map(fd, off, lenBytes)
	if errno == 0 && off == uring.OffSQRing {
		w.mu.Lock()
		defer w.mu.Unlock()
		p := w.p[fd]
		w.heads[unsafe.SliceData(m)] = [2]*uint32{
			(*uint32)(unsafe.Pointer(&m[p.SQOffset.Head])), (*uint32)(unsafe.Pointer(&m[p.CQOffset.Head])),
		}
	}
	return m, errno
}

func (w *watched) Unmap(m []byte) {
	w.mu.Lock()
	h, ok := w.heads[unsafe.SliceData(m)]
	delete(w.heads, unsafe.SliceData(m))
	w.mu.Unlock()
	if ok && atomic.LoadUint32(h[0]) != atomic.LoadUint32(h[1]) {
		w.t.Error("a ring was unmapped with requests in flight")
	}
	w.Kernel.Unmap(m)
}
