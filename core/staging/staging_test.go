package staging

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"libphoenix/engine"
)

func newDevice(v *fakeVendor, slots int) *Device {
	return New(Config{Stager: v, Bytes: uint64(slots) * slotBytes})
}

// take is a slot of d, which has one.
func take(t testing.TB, d *Device) engine.Slot {
	t.Helper()
	s, errno := d.Slot(true)
	if errno != 0 {
		t.Fatalf("Slot: %v", errno)
	}
	return s
}

// pass sends n bytes of value b through a slot to at.
func pass(s engine.Slot, at engine.HostAddr, n int, b byte) syscall.Errno {
	copy(bytesAt(uintptr(s.Place(at)), uint64(n)), bytes.Repeat([]byte{b}, n))
	s.Start(engine.Read, at, uint64(n))
	return s.Wait()
}

func TestDeviceWithoutTransfersCostsNothing(t *testing.T) {
	v := newVendor(t)
	d := newDevice(v, 4)
	d.Close()
	if v.opened.Load() != 0 || v.allocs.Load() != 0 {
		t.Errorf("%d streams, %d pieces of memory", v.opened.Load(), v.allocs.Load())
	}
}

func TestDataGoesThroughSlotsBothWays(t *testing.T) {
	v := newVendor(t)
	v.late = true
	d := newDevice(v, 4)
	defer d.Close()
	mem, at := deviceMemory(t, 64<<10)
	s := take(t, d)
	if got := uintptr(s.Place(at+77)) % pageBytes; got != 77 {
		t.Errorf("Place is %d bytes into its page, want 77", got)
	}
	if errno := pass(s, at+77, 1000, 'x'); errno != 0 || !bytes.Equal(mem[77:1077], bytes.Repeat([]byte{'x'}, 1000)) || mem[76] != 0 || mem[1077] != 0 {
		t.Errorf("to the device: %v, %q", errno, mem[70:90])
	}
	mem[5000] = 'y'
	s.Start(engine.Write, at+5000, 1)
	if errno := s.Wait(); errno != 0 || bytesAt(uintptr(s.Place(at+5000)), 1)[0] != 'y' {
		t.Errorf("from the device: %v", errno)
	}
	if errno := s.Wait(); errno != 0 {
		t.Errorf("a second Wait: %v", errno)
	}
	s.Release()
}

func TestMemoryGrowsWithNeedUpToTheBudget(t *testing.T) {
	v := newVendor(t)
	d := newDevice(v, 3)
	for range 5 {
		take(t, d).Release()
	}
	if got := v.allocs.Load(); got != 1 {
		t.Errorf("one slot at a time took memory for %d", got)
	}
	held := []engine.Slot{take(t, d), take(t, d), take(t, d)}
	if s, errno := d.Slot(false); s != nil || errno != 0 {
		t.Errorf("beyond the budget: %v, %v", s, errno)
	}
	if got := d.Bytes(); got != 3*slotBytes {
		t.Errorf("%d bytes, want 3 slots", got)
	}
	for _, s := range held {
		s.Release()
	}
	d.Close()
	if v.frees.Load() != 3 {
		t.Errorf("%d slots' memory given back", v.frees.Load())
	}
}

func TestWaiterGetsTheSlotThatComesBack(t *testing.T) {
	d := newDevice(newVendor(t), 1)
	defer d.Close()
	s := take(t, d)
	got := make(chan engine.Slot)
	go func() { got <- take(t, d) }()
	for d.waiting.Load() == 0 {
		runtime.Gosched()
	}
	s.Release()
	(<-got).Release()
}

func TestFailingAllocation(t *testing.T) {
	noMemory := fmt.Errorf("driver: %w", syscall.ENOMEM)
	t.Run("the first", func(t *testing.T) {
		v := newVendor(t)
		v.onAlloc = func(nth int64) error {
			if nth <= 2 {
				return noMemory
			}
			return nil
		}
		d := newDevice(v, 2)
		defer d.Close()
		for range 2 {
			if s, errno := d.Slot(true); s != nil || errno != syscall.ENOMEM {
				t.Fatalf("got %v, %v", s, errno)
			}
		}
		take(t, d).Release() // nothing is remembered
	})
	t.Run("a later one", func(t *testing.T) {
		v := newVendor(t)
		v.onAlloc = func(nth int64) error {
			if nth > 1 {
				return noMemory
			}
			return nil
		}
		d := newDevice(v, 8)
		defer d.Close()
		s := take(t, d)
		if other, errno := d.Slot(false); other != nil || errno != 0 {
			t.Fatalf("got %v, %v, want to be told to wait", other, errno)
		}
		got := make(chan engine.Slot)
		go func() { got <- take(t, d) }()
		for d.waiting.Load() == 0 {
			runtime.Gosched()
		}
		s.Release()
		(<-got).Release()
		if n := v.allocs.Load(); n != 2 {
			t.Errorf("%d attempts, want no more after the first that failed", n)
		}
	})
	t.Run("while another one gets the last memory", func(t *testing.T) {
		v := newVendor(t)
		failed := make(chan struct{})
		v.onAlloc = func(nth int64) error {
			if nth == 1 {
				<-failed
				return nil
			}
			return noMemory
		}
		d := newDevice(v, 8)
		defer d.Close()
		first := make(chan engine.Slot)
		go func() { first <- take(t, d) }()
		for v.allocs.Load() == 0 {
			runtime.Gosched()
		}
		second := make(chan syscall.Errno)
		go func() {
			s, errno := d.Slot(true)
			if s != nil {
				s.Release()
			}
			second <- errno
		}()
		for v.allocs.Load() < 2 || d.waiting.Load() == 0 {
			select {
			case errno := <-second:
				t.Fatalf("got %v while the first may still get memory", errno)
			default:
				runtime.Gosched()
			}
		}
		close(failed)
		(<-first).Release()
		if errno := <-second; errno != 0 {
			t.Errorf("got %v, want the first one's slot", errno)
		}
	})
	t.Run("while another waits for it", func(t *testing.T) {
		v := newVendor(t)
		waiting := make(chan struct{})
		v.onAlloc = func(int64) error {
			<-waiting
			return noMemory
		}
		d := newDevice(v, 1)
		defer d.Close()
		errs := make(chan syscall.Errno, 2)
		for range 2 {
			go func() {
				_, errno := d.Slot(true)
				errs <- errno
			}()
		}
		for d.waiting.Load() == 0 {
			runtime.Gosched()
		}
		close(waiting)
		for range 2 {
			if errno := <-errs; errno != syscall.ENOMEM {
				t.Errorf("got %v, want ENOMEM", errno)
			}
		}
	})
}

func TestStreamThatCannotBeMadeFailsItsJobs(t *testing.T) {
	v := newVendor(t)
	var tries atomic.Int64
	v.onOpen = func() error {
		if tries.Add(1) <= 3 {
			return fmt.Errorf("no context: %w", syscall.ENODEV)
		}
		return nil
	}
	d := newDevice(v, 2)
	defer d.Close()
	for range 3 {
		if _, errno := d.Slot(true); errno != syscall.ENODEV {
			t.Fatalf("got %v, want ENODEV", errno)
		}
	}
	_, at := deviceMemory(t, 4096)
	s := take(t, d)
	if errno := pass(s, at, 10, 'a'); errno != 0 {
		t.Errorf("afterwards: %v", errno)
	}
	s.Release()
}

func TestFailingCopyIsTheSlotsErrorOnly(t *testing.T) {
	v := newVendor(t)
	v.onCopy = func(nth int64) error {
		switch nth {
		case 2:
			return fmt.Errorf("refused: %w", syscall.EFAULT)
		case 3:
			return errors.New("without an errno")
		}
		return nil
	}
	d := newDevice(v, 2)
	defer d.Close()
	mem, at := deviceMemory(t, 4096)
	s := take(t, d)
	for i, want := range []syscall.Errno{0, syscall.EFAULT, syscall.EIO, 0} {
		if got := pass(s, at, 16, byte('a'+i)); got != want {
			t.Errorf("copy %d: %v, want %v", i+1, got, want)
		}
	}
	if mem[0] != 'd' {
		t.Errorf("device memory holds %q", mem[:4])
	}
	s.Release()
}

// A device that fails while copies are under way fails all of them, and a fresh
// stream is made for the next one.
func TestDeviceFailureEndsAllCopies(t *testing.T) {
	v := newVendor(t)
	v.late = true
	v.barrier = make(chan struct{})
	d := newDevice(v, 3)
	defer d.Close()
	_, at := deviceMemory(t, 4096)
	held := []engine.Slot{take(t, d), take(t, d), take(t, d)}
	for _, s := range held {
		s.Start(engine.Read, at, 8)
	}
	v.failed.Store(int32(syscall.EREMOTEIO))
	close(v.barrier)
	for i, s := range held {
		if errno := s.Wait(); errno != syscall.EREMOTEIO {
			t.Errorf("copy %d: %v", i, errno)
		}
	}
	v.failed.Store(0)
	if errno := pass(held[0], at, 8, 'z'); errno != 0 {
		t.Errorf("afterwards: %v", errno)
	}
	for _, s := range held {
		s.Release()
	}
}

// Copies that are over late hold their slots until then, and no others.
func TestLateCopies(t *testing.T) {
	v := newVendor(t)
	v.late = true
	v.barrier = make(chan struct{})
	d := newDevice(v, 2)
	defer d.Close()
	mem, at := deviceMemory(t, 4096)
	s, other := take(t, d), take(t, d)
	s.Start(engine.Read, at, 4096)
	copied := make(chan syscall.Errno)
	go func() { copied <- s.Wait() }()
	if mem[0] != 0 {
		t.Error("the copy is over early")
	}
	other.Release()
	take(t, d).Release()
	select {
	case errno := <-copied:
		t.Errorf("Wait returned %v before the copy was over", errno)
	default:
	}
	close(v.barrier)
	if errno := <-copied; errno != 0 {
		t.Errorf("Wait: %v", errno)
	}
	s.Release()
}

func TestPanicInADriverCallCostsItsJobs(t *testing.T) {
	v := newVendor(t)
	v.onCopy = func(nth int64) error {
		if nth == 2 {
			panic("of the test")
		}
		return nil
	}
	var notices atomic.Int64
	d := New(Config{Stager: v, Bytes: 2 * slotBytes, Notice: func(reason string) {
		if strings.Contains(reason, "of the test") {
			notices.Add(1)
		}
	}})
	defer d.Close()
	_, at := deviceMemory(t, 4096)
	s := take(t, d)
	for i, want := range []syscall.Errno{0, syscall.EIO, 0} {
		if got := pass(s, at, 8, 'p'); got != want {
			t.Errorf("copy %d: %v, want %v", i+1, got, want)
		}
	}
	s.Release()
	if notices.Load() != 1 {
		t.Errorf("%d notices", notices.Load())
	}
}

// A lane has at most StreamDepth copies under way, whatever comes.
func TestManyThreads(t *testing.T) {
	const threads, rounds = 24, 200
	v := newVendor(t)
	v.late = true
	d := newDevice(v, 8)
	mem, at := deviceMemory(t, threads*4096)
	var group sync.WaitGroup
	for i := range threads {
		group.Go(func() {
			mine := at + engine.HostAddr(i*4096)
			for r := range rounds {
				s := take(t, d)
				if errno := pass(s, mine, 4096, byte(r)); errno != 0 {
					t.Errorf("thread %d: %v", i, errno)
				}
				if mem[i*4096] != byte(r) || mem[i*4096+4095] != byte(r) {
					t.Errorf("thread %d round %d: stale data", i, r)
				}
				s.Release()
			}
		})
	}
	group.Wait()
	for i := range d.lanes {
		if got := d.lanes[i].load.Load(); got != 0 {
			t.Errorf("lane %d: %d jobs left", i, got)
		}
	}
	d.Close()
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	v := newVendor(t)
	d := newDevice(v, 2)
	defer d.Close()
	take(t, d).Release()
	if n := testing.AllocsPerRun(1000, func() {
		s, _ := d.Slot(true)
		s.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
