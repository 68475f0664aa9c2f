package engine_test

import (
	"syscall"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/enginetest"
	"libphoenix/internal/need"
	"libphoenix/internal/uring"
	"libphoenix/internal/uring/uringtest"
)

// newUring makes an engine of real rings; where there are none, the test is
// skipped unless PHX_REQUIRE asks for them.
func newUring(t testing.TB, cfg engine.Config) engine.Engine {
	t.Helper()
	e, err := engine.NewUring(cfg)
	if err != nil {
		needUring(t, err)
	}
	return e
}

func needUring(t testing.TB, err error) {
	t.Helper()
	need.Missing(t, need.IOUring, "%v", err)
}

// through gives the requests of an emulated ring to io.
func through(io engine.IO) func(uringtest.Request) int32 {
	return func(q uringtest.Request) int32 {
		var n int64
		var errno syscall.Errno
		switch q.Opcode {
		case uring.Read, uring.Readv:
			n, errno = io.Pread(q.FD, engine.HostAddr(q.Addr), uint64(q.Len), q.Off)
		case uring.Write, uring.Writev:
			n, errno = io.Pwrite(q.FD, engine.HostAddr(q.Addr), uint64(q.Len), q.Off)
		default:
			errno = syscall.EINVAL
		}
		if errno != 0 {
			return -int32(errno)
		}
		return int32(n)
	}
}

func TestUringEngine(t *testing.T) {
	enginetest.RunPlain(t, func(t *testing.T, cfg engine.Config) engine.Engine { return newUring(t, cfg) })
}

// The same with the smallest ring, so that every window is full at once.
func TestUringEngineSmallWindow(t *testing.T) {
	enginetest.RunPlain(t, func(t *testing.T, cfg engine.Config) engine.Engine {
		cfg.Depth = 1
		return newUring(t, cfg)
	})
}

// TestUringEngineScripted puts the script under emulated rings, and as IO under
// what does not go through a ring.
func TestUringEngineScripted(t *testing.T) {
	enginetest.RunScripted(t, func(t *testing.T, cfg engine.Config) engine.Engine {
		k := uringtest.New(trialFree(through(cfg.IO)))
		cfg.Rings = k
		e, err := engine.NewUring(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if n := k.Rings(); n != 0 {
				t.Errorf("%d rings left after Close", n)
			}
		})
		return e
	})
}

// trialFree keeps the engine's own first read, of one byte, from the script.
func trialFree(do func(uringtest.Request) int32) func(uringtest.Request) int32 {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	return func(q uringtest.Request) int32 {
		select {
		case <-first:
			return through(kernel{})(q)
		default:
			return do(q)
		}
	}
}

// kernel is an engine.IO of real system calls.
type kernel struct{}

func (kernel) Pread(fd int32, addr engine.HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	r, _, e := syscall.Syscall6(syscall.SYS_PREAD64, uintptr(fd), uintptr(addr), uintptr(n), uintptr(off), 0, 0)
	return int64(r), e
}

func (kernel) Pwrite(fd int32, addr engine.HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	r, _, e := syscall.Syscall6(syscall.SYS_PWRITE64, uintptr(fd), uintptr(addr), uintptr(n), uintptr(off), 0, 0)
	return int64(r), e
}
