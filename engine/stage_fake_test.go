package engine

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fakeStager has few slots and copies at once, on another goroutine.
type fakeStager struct {
	free    chan *fakeSlot
	copies  atomic.Int64
	fail    func(copy int64) syscall.Errno // nil: copies succeed
	empty   syscall.Errno                  // Slot's answer, if set
	waiting atomic.Int64
}

type fakeSlot struct {
	s     *fakeStager
	mem   []byte
	over  chan syscall.Errno
	under bool
	last  syscall.Errno
}

func newFakeStager(t *testing.T, n int) *fakeStager {
	t.Helper()
	s := &fakeStager{free: make(chan *fakeSlot, n)}
	for range n {
		mem, err := unix.Mmap(-1, 0, StageBytes+4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(mem) })
		s.free <- &fakeSlot{s: s, mem: mem, over: make(chan syscall.Errno, 1)}
	}
	t.Cleanup(func() {
		if len(s.free) != n {
			t.Errorf("%d of %d slots came back", len(s.free), n)
		}
	})
	return s
}

func (s *fakeStager) Slot(_ uint32, wait bool) (Slot, syscall.Errno) {
	if s.empty != 0 {
		return nil, s.empty
	}
	select {
	case slot := <-s.free:
		return slot, 0
	default:
	}
	if !wait {
		return nil, 0
	}
	s.waiting.Add(1)
	return <-s.free, 0
}

func (f *fakeSlot) Place(at HostAddr) HostAddr {
	return HostAddr(uintptr(unsafe.Pointer(unsafe.SliceData(f.mem)))) + at%4096
}

// Start copies between the slot and the device: memory of the test, which its
// address is the key of.
func (f *fakeSlot) Start(k Kind, at HostAddr, n uint64) {
	number := f.s.copies.Add(1)
	f.under = true
	go func() {
		if f.s.fail != nil {
			if errno := f.s.fail(number); errno != 0 {
				f.over <- errno
				return
			}
		}
		to, from := foreign(at, n), foreign(f.Place(at), n)
		if k == Write {
			to, from = from, to
		}
		copy(to, from)
		f.over <- 0
	}()
}

func (f *fakeSlot) Wait() syscall.Errno {
	if f.under {
		f.last, f.under = <-f.over, false
	}
	return f.last
}

func (f *fakeSlot) Release() {
	f.last = 0
	f.s.free <- f
}

// foreign is memory outside the Go heap. checkptr cannot know it.
//
//go:nocheckptr
func foreign(at HostAddr, n uint64) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n)
}

func foreignMemory(t *testing.T, n int) ([]byte, HostAddr) {
	t.Helper()
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	return m, HostAddr(uintptr(unsafe.Pointer(unsafe.SliceData(m))))
}

func stageFile(t *testing.T, n, flags int) (*os.File, []byte) {
	t.Helper()
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(data)
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, data
}
