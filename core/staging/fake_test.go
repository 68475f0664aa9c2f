package staging

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"libphoenix/connectors"
	"libphoenix/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeVendor makes streams whose device is this process's memory, and keeps
// books: what a real driver would answer with corrupted data fails the test.
type fakeVendor struct {
	t testing.TB

	// Hooks, set before use; nil: success. Called on the lane's thread.
	onOpen  func() error
	onAlloc func(nth int64) error
	onCopy  func(nth int64) error

	// late: copies are over only when a Finished has waited, or when the test
	// opens the barrier.
	late    bool
	barrier chan struct{} // a waiting Finished receives from it; nil: it does not wait
	failed  atomic.Int32  // an errno that Finished answers from now on; 0: none

	opened, closed, allocs, frees, copies atomic.Int64
	largest                               atomic.Int64 // copies under way at once, of one stream
	mu                                    sync.Mutex
	memory                                map[uintptr]uint64
}

func newVendor(t testing.TB) *fakeVendor {
	v := &fakeVendor{t: t, memory: map[uintptr]uint64{}}
	t.Cleanup(func() {
		if v.opened.Load() != v.closed.Load() {
			t.Errorf("%d streams opened, %d closed", v.opened.Load(), v.closed.Load())
		}
		if len(v.memory) != 0 {
			t.Errorf("%d slots' memory not given back", len(v.memory))
		}
	})
	return v
}

func (*fakeVendor) StageDevice(int) error                             { return nil }
func (*fakeVendor) CheckMemory(int, connectors.DevAddr, uint64) error { return nil }

func (v *fakeVendor) OpenStream(ordinal int) (connectors.Stream, error) {
	if v.onOpen != nil {
		if err := v.onOpen(); err != nil {
			return nil, err
		}
	}
	v.opened.Add(1)
	return &fakeStream{v: v, thread: unix.Gettid()}, nil
}

type fakeStream struct {
	v      *fakeVendor
	thread int
	begun  []func()
	over   uint64
}

func (s *fakeStream) check(call string) {
	if got := unix.Gettid(); got != s.thread {
		s.v.t.Errorf("%s on thread %d, the stream is thread %d's", call, got, s.thread)
	}
}

func (s *fakeStream) Alloc(n uint64) (uintptr, error) {
	s.check("Alloc")
	if nth := s.v.allocs.Add(1); s.v.onAlloc != nil {
		if err := s.v.onAlloc(nth); err != nil {
			return 0, err
		}
	}
	mem, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0, err
	}
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	s.v.memory[uintptr(mem)] = n
	return uintptr(mem), nil
}

func (s *fakeStream) Free(host uintptr, n uint64) {
	s.check("Free")
	s.v.frees.Add(1)
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	if s.v.memory[host] != n {
		s.v.t.Errorf("Free of %d bytes at %#x, which has %d", n, host, s.v.memory[host])
		return
	}
	delete(s.v.memory, host)
	_ = unix.MunmapPtr(*(*unsafe.Pointer)(unsafe.Pointer(&host)), uintptr(n))
}

func (s *fakeStream) Copy(toDevice bool, dev connectors.DevAddr, host uintptr, n uint64) error {
	s.check("Copy")
	if nth := s.v.copies.Add(1); s.v.onCopy != nil {
		if err := s.v.onCopy(nth); err != nil {
			return err
		}
	}
	to, from := bytesAt(uintptr(dev), n), bytesAt(host, n)
	if !toDevice {
		to, from = from, to
	}
	s.begun = append(s.begun, func() { copy(to, from) })
	if len(s.begun) > connectors.StreamDepth {
		s.v.t.Errorf("%d copies under way", len(s.begun))
	}
	s.v.largest.Store(max(s.v.largest.Load(), int64(len(s.begun))))
	return nil
}

func (s *fakeStream) Finished(wait bool) (uint64, error) {
	s.check("Finished")
	if wait && s.v.barrier != nil {
		<-s.v.barrier
	}
	if errno := s.v.failed.Load(); errno != 0 {
		s.begun = nil
		return s.over, fmt.Errorf("the device: %w", syscall.Errno(errno))
	}
	if !s.v.late || wait {
		for _, copy := range s.begun {
			copy()
			s.over++
		}
		s.begun = nil
	}
	return s.over, nil
}

func (s *fakeStream) Close() {
	s.check("Close")
	s.v.closed.Add(1)
}

// bytesAt is memory outside the Go heap. checkptr cannot know it.
//
//go:nocheckptr
func bytesAt(at uintptr, n uint64) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n)
}

// deviceMemory is n bytes that stand for a device's.
func deviceMemory(t testing.TB, n int) ([]byte, engine.HostAddr) {
	t.Helper()
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	return m, engine.HostAddr(uintptr(unsafe.Pointer(unsafe.SliceData(m))))
}
