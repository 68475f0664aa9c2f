package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
	"libphoenix/internal/uring"
	"libphoenix/internal/uring/uringtest"
)

// The correctness traps of performance.md, one test for each. Short reads, the
// end of the file, errors after progress and EINTR are stories of enginetest
// ("every short count", "an error after progress keeps the bytes", "EINTR is
// retried"), which TestUringEngineScripted runs on emulated rings.

// pages is memory outside the Go heap, as a caller's is.
func pages(t testing.TB, lenBytes int) []byte {
	t.Helper()
	m, err := unix.Mmap(-1, 0, lenBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	return m
}

// noisy is a file of random data.
func noisy(t testing.TB, lenBytes int) (fd int32, data []byte) {
	t.Helper()
	data = make([]byte, lenBytes)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	path := filepath.Join(t.TempDir(), "noisy")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return openFile(t, path, unix.O_RDWR), data
}

func openFile(t testing.TB, path string, flags int) int32 {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return int32(fd)
}

// withRings makes an engine on k that is closed at the end.
func withRings(t testing.TB, k uring.Kernel, cfg engine.Config) engine.Engine {
	t.Helper()
	cfg.Rings = k
	if cfg.Helpers == 0 {
		cfg.Helpers = 1
	}
	e, err := engine.NewUring(cfg)
	if err != nil {
		if _, emulated := k.(*uringtest.Emulator); emulated {
			t.Fatal(err)
		}
		if plain, err := engine.NewUring(engine.Config{}); err != nil {
			needUring(t, err)
		} else {
			plain.Close()
		}
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func runSync(e engine.Engine, k engine.Kind, ops []engine.Op) {
	b := engine.Batch{}
	e.Begin(&b, engine.Sync)
	b.Ops, b.Kind = ops, k
	e.Run(&b)
}

func runAsync(t testing.TB, e engine.Engine, k engine.Kind, ops []engine.Op) {
	t.Helper()
	b := engine.Batch{}
	e.Begin(&b, engine.Async)
	b.Ops, b.Kind = ops, k
	if err := e.Submit(&b); err != nil {
		t.Fatal(err)
	}
	e.Wait(&b)
}

// readBack reads n blocks in a sync and in an async batch and compares.
func readBack(t testing.TB, e engine.Engine, fd int32, data []byte, n int) {
	t.Helper()
	mem := pages(t, n*block)
	for _, async := range []bool{false, true} {
		clear(mem)
		ops := benchOps(fd, mem, n)
		if async {
			runAsync(t, e, engine.Read, ops)
		} else {
			runSync(e, engine.Read, ops)
		}
		check(t, &engine.Batch{Ops: ops})
		if !bytes.Equal(mem, data[:n*block]) {
			t.Fatalf("wrong data, async %v", async)
		}
	}
}

// spoiled is the real kernel with a Tamper that an engine's trial does not see.
func spoiled(onEnter func(call int, submit, min uint32) (uint32, syscall.Errno)) *uringtest.Tamper {
	var calls atomic.Int32
	return &uringtest.Tamper{Kernel: uring.Linux{}, OnEnter: func(submit, min uint32) (uint32, syscall.Errno) {
		n := calls.Add(1) - 1
		if n == 0 {
			return submit, 0 // the trial
		}
		return onEnter(int(n), submit, min)
	}}
}

func TestPartialSubmitIsContinued(t *testing.T) {
	for most := range uint32(4) {
		k := spoiled(func(call int, submit, _ uint32) (uint32, syscall.Errno) {
			if most == 0 { // now and then nothing at all
				return uint32(call % 3), 0
			}
			return min(submit, most), 0
		})
		e := withRings(t, k, engine.Config{})
		fd, data := noisy(t, 700*block)
		readBack(t, e, fd, data, 700)
	}
}

func TestEnterIsRepeatedAfterEINTR(t *testing.T)  { refusedEnter(t, syscall.EINTR) }
func TestEnterIsRepeatedAfterEAGAIN(t *testing.T) { refusedEnter(t, syscall.EAGAIN) }
func TestEnterIsRepeatedAfterEBUSY(t *testing.T)  { refusedEnter(t, syscall.EBUSY) }

// refusedEnter has two of three calls fail, before or after they were made.
func refusedEnter(t *testing.T, errno syscall.Errno) {
	var notices atomic.Int32
	fd, data := noisy(t, 700*block)
	k := spoiled(func(call int, submit, _ uint32) (uint32, syscall.Errno) {
		if call%3 != 0 {
			return 0, errno
		}
		return min(submit, 11), 0
	})
	e := withRings(t, k, engine.Config{Notice: func(string) { notices.Add(1) }})
	readBack(t, e, fd, data, 700)

	var calls atomic.Int32
	k = &uringtest.Tamper{Kernel: uring.Linux{}, AfterEnter: func(_, _ uint32, was syscall.Errno) syscall.Errno {
		if n := calls.Add(1); n > 1 && n%3 != 0 {
			return errno
		}
		return was
	}}
	e = withRings(t, k, engine.Config{Notice: func(string) { notices.Add(1) }})
	readBack(t, e, fd, data, 700)
	if n := notices.Load(); n != 0 {
		t.Errorf("%d notices, want none: nothing is broken", n)
	}
}

// A ring whose every call is refused, or succeeds and does nothing, is given up
// and asked no more: batches are right, and each thread has lost time once.
func TestEndlessRefusalGivesTheRingUp(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EAGAIN, syscall.EBUSY, syscall.EINTR, 0} {
		t.Run(fmt.Sprint(int(errno)), func(t *testing.T) {
			var calls, notices atomic.Int32
			k := spoiled(func(int, uint32, uint32) (uint32, syscall.Errno) { calls.Add(1); return 0, errno })
			e := withRings(t, k, engine.Config{Notice: func(string) { notices.Add(1) }})
			fd, data := noisy(t, 20*block)
			for round := 0; ; round++ {
				before := calls.Load()
				readBack(t, e, fd, data, 20)
				if calls.Load() == before {
					break
				}
				if round == 3 { // the caller's ring, and the helper's
					t.Fatal("four rounds of batches, and the rings are still asked")
				}
			}
			if n := notices.Load(); n != 1 {
				t.Errorf("%d notices, want 1", n)
			}
		})
	}
}

// No op at the ring is longer than 1 GiB, though the field has 32 bits; an
// O_APPEND write is not sliced and so the longest there is.
func TestChunksOfOneGiB(t *testing.T) {
	const size = 5<<30 + 7
	var mu sync.Mutex
	var got []string
	k := uringtest.New(trialFree(func(q uringtest.Request) int32 {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf("%d+%d@%d", q.Addr, q.Len, q.Off))
		return int32(q.Len)
	}))
	e := withRings(t, k, engine.Config{})
	fd := openFile(t, filepath.Join(t.TempDir(), "log"), unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND)
	ops := []engine.Op{{FD: fd, Addr: 1 << 40, Len: size, Off: 3}}
	runSync(e, engine.Write, ops)
	if ops[0].Result != size {
		t.Errorf("result %d, want %d", ops[0].Result, size)
	}
	for i := range int64(6) {
		want := fmt.Sprintf("%d+%d@%d", 1<<40+i<<30, min(1<<30, size-i<<30), 3+i<<30)
		if int(i) >= len(got) || got[i] != want {
			t.Fatalf("requests %v, number %d want %s", got, i, want)
		}
	}
}

// Kernels before 5.6 have no OP_READ and OP_WRITE, and say EINVAL; EOPNOTSUPP
// comes from files that a ring cannot read. Each has the next way tried.
func TestUnknownOpcodesFallBack(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EINVAL, syscall.EOPNOTSUPP} {
		for _, k := range []engine.Kind{engine.Read, engine.Write} {
			t.Run(fmt.Sprintf("%v, kind %d", errno, k), func(t *testing.T) {
				var plain, vector atomic.Int32
				rings := uringtest.New(func(q uringtest.Request) int32 {
					switch q.Opcode {
					case uring.Read, uring.Write:
						plain.Add(1)
						return -int32(errno)
					default:
						vector.Add(1)
						return through(kernel{})(q)
					}
				})
				e := withRings(t, rings, engine.Config{Depth: 8})
				fd, data := noisy(t, 100*block)
				mem := pages(t, 100*block)
				copy(mem, data)
				ops := benchOps(fd, mem, 100)
				runSync(e, k, ops)
				check(t, &engine.Batch{Ops: ops})
				if !bytes.Equal(mem, data) {
					t.Error("wrong data")
				}
				// Each lane learns it with its first window.
				if p, v := plain.Load(), vector.Load(); p > 1+2*8 || v < 100 {
					t.Errorf("%d plain requests, %d vectored", p, v)
				}
			})
		}
	}
}

// A file that no opcode can read, though pread can.
func TestUnsupportedFileIsReadWithPread(t *testing.T) {
	rings := uringtest.New(trialFree(func(uringtest.Request) int32 { return -int32(syscall.EOPNOTSUPP) }))
	e := withRings(t, rings, engine.Config{})
	fd, data := noisy(t, 50*block)
	readBack(t, e, fd, data, 50)
}

// What may be io_uring's own refusal is asked again with pread.
func TestRefusedRequestsAreDoneWithPread(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EAGAIN, syscall.EBUSY, syscall.ECANCELED, syscall.ENOMEM, syscall.EINVAL, syscall.EPERM} {
		var turn atomic.Int32
		rings := uringtest.New(trialFree(func(q uringtest.Request) int32 {
			switch turn.Add(1) % 3 {
			case 0:
				return -int32(errno)
			case 1: // after progress
				q.Len = min(q.Len, 1000)
			}
			return through(kernel{})(q)
		}))
		e := withRings(t, rings, engine.Config{})
		fd, data := noisy(t, 200*block)
		readBack(t, e, fd, data, 200)
	}
}

// The emulator panics if completions would not fit. All requests of a window
// are held until the window is full, and then complete in any order.
func TestWindowNeverExceedsTheRing(t *testing.T) {
	const depth = 8
	var running, most atomic.Int32
	rings := uringtest.New(func(q uringtest.Request) int32 {
		for n := running.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		for range 50 {
			runtime.Gosched()
		}
		defer running.Add(-1)
		return through(kernel{})(q)
	})
	e := withRings(t, rings, engine.Config{Depth: depth})
	fd, data := noisy(t, 2000*block)
	readBack(t, e, fd, data, 2000)
	if n := most.Load(); n > 2*depth { // the caller's ring and the helper's
		t.Errorf("%d requests at once on two rings of %d", n, depth)
	}
}

// While units are unclaimed the window is refilled when a quarter of it is
// done; only the tail waits for all.
func TestOnlyTheTailWaitsForAll(t *testing.T) {
	const depth, n = 16, 100
	var mu sync.Mutex
	var waits []uint32
	k := spoiled(func(_ int, submit, min uint32) (uint32, syscall.Errno) {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, min)
		return submit, 0
	})
	e := withRings(t, k, engine.Config{Depth: depth})
	fd, _ := noisy(t, n*16)
	mem := pages(t, n*16)
	ops := make([]engine.Op, n) // too little work for a helper
	for i := range ops {
		ops[i] = engine.Op{FD: fd, Addr: addrOf(mem[i*16:]), Len: 16, Off: int64(i * 16), Group: uint32(i)}
	}
	runSync(e, engine.Read, ops[:30])
	runSync(e, engine.Read, ops[:10])
	if len(waits) < 3 {
		t.Fatalf("waits %v", waits)
	}
	for i, w := range waits {
		switch {
		case i == len(waits)-1 && w != 10:
			t.Errorf("a batch of 10 waited for %d", w)
		case i < len(waits)-2 && w != depth/4:
			t.Errorf("wait %d of the bigger batch was for %d, want %d", i, w, depth/4)
		}
	}
}
