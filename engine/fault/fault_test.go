package fault_test

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

const size = 64

func newFile(t *testing.T) (int32, engine.HostAddr) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	// Not Go memory: nothing but an integer refers to it.
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return int32(f.Fd()), engine.HostAddr(uintptr(unsafe.Pointer(&mem[0])))
}

func TestFirstApplicableRuleWins(t *testing.T) {
	fd, addr := newFile(t)
	read := fault.On(engine.Read)
	s := new(fault.Script).Add(
		fault.On(engine.Write).Fail(syscall.ENOSPC),
		read.FD(fd+1).Fail(syscall.EBADF),
		read.At(8).Fail(syscall.EIO),
		read.Nth(1).Short(3),
		read.Nth(1).Short(0),
		read.Nth(1).Fail(syscall.EINTR),
		read.Between(16, 32).Nth(2).Short(5),
	)
	for i, c := range []struct {
		off   int64
		n     int64
		errno syscall.Errno
	}{{8, -1, syscall.EIO}, {0, 3, 0}, {0, 0, 0}, {0, -1, syscall.EINTR}, {0, size, 0}, {16, size - 16, 0}, {31, 5, 0}, {31, size - 31, 0}} {
		if n, errno := s.Pread(fd, addr, size, c.off); n != c.n || errno != c.errno {
			t.Errorf("call %d, at %d: %d, %v, want %d, %v", i, c.off, n, errno, c.n, c.errno)
		}
	}
	if n, errno := s.Pwrite(fd, addr, size, 0); n != -1 || errno != syscall.ENOSPC {
		t.Errorf("write: %d, %v, want -1, %v", n, errno, syscall.ENOSPC)
	}
	if s.Calls() != 9 {
		t.Errorf("%d calls, want 9", s.Calls())
	}
}

func TestBarrierHoldsCallsUntilReleased(t *testing.T) {
	fd, addr := newFile(t)
	held := fault.NewBarrier()
	s := new(fault.Script).Add(fault.On(engine.Read).Late(held)).Record()
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() { s.Pread(fd, addr, size, 0) })
	}
	held.WaitParked(3)
	if got := len(s.Events()); got != 3 {
		t.Errorf("%d events while 3 calls are held, want 3 beginnings", got)
	}
	held.Release()
	group.Wait()
	s.WaitEnded(3)
	if held.Parked() != 0 {
		t.Errorf("%d calls held after the release", held.Parked())
	}
	s.Pread(fd, addr, size, 0) // an open barrier stays open
}

func TestPanicRule(t *testing.T) {
	fd, addr := newFile(t)
	s := new(fault.Script).Add(fault.On(engine.Read).Panic("scripted"))
	defer func() {
		if got := recover(); got != "scripted" {
			t.Errorf("recovered %v, want the rule's value", got)
		}
	}()
	s.Pread(fd, addr, size, 0)
	t.Error("no panic")
}
