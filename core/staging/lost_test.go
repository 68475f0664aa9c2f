package staging

import (
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/connectors"
)

// mortalVendor can tell whether memory is still there.
type mortalVendor struct {
	*fakeVendor
	gone map[uintptr]uint64 // under mu; mapped until the test ends, so addresses are not used again
}

func newMortal(t *testing.T) *mortalVendor {
	v := &mortalVendor{newVendor(t), map[uintptr]uint64{}}
	t.Cleanup(func() {
		for mem, n := range v.gone {
			_ = unix.MunmapPtr(*(*unsafe.Pointer)(unsafe.Pointer(&mem)), uintptr(n))
		}
	})
	return v
}

// reset takes the memory of all slots; giving it back fails the test from now on.
func (v *mortalVendor) reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for mem, n := range v.memory {
		v.gone[mem] = n
		delete(v.memory, mem)
	}
}

func (v *mortalVendor) Identity(addr connectors.DevAddr, _ uint64) (uint64, connectors.LifeState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.memory[uintptr(addr)] == 0 {
		return 0, connectors.LifeGone
	}
	return uint64(addr), connectors.LifeKnown
}

func (*mortalVendor) IdentityFunc() uintptr { return 0 }

func TestLostMemoryIsReplacedAndNotGivenBack(t *testing.T) {
	v := newMortal(t)
	d := New(Config{Stager: v, Bytes: 2 * slotBytes})
	mem, at := deviceMemory(t, 4096)
	s := take(t, d)
	v.reset()
	if errno := pass(s, at, 100, 'a'); errno != syscall.EIO || mem[0] != 0 {
		t.Errorf("a slot that lost its memory while it was taken: %v, the device has %q; want EIO, nothing", errno, mem[0])
	}
	s.Release()
	for turn := range 3 {
		s = take(t, d)
		if errno := pass(s, at, 100, 'b'+byte(turn)); errno != 0 || mem[99] != 'b'+byte(turn) {
			t.Errorf("reset %d: %v, the device has %q", turn, errno, mem[99])
		}
		s.Release()
		if got := d.Bytes(); got != slotBytes {
			t.Errorf("reset %d: %d bytes, want those of one slot", turn, got)
		}
		v.reset()
	}
	d.Close()
	if got := v.frees.Load(); got != 0 {
		t.Errorf("%d slots' memory given back that was not ours any more", got)
	}
	if got := v.opened.Load(); got != 4 {
		t.Errorf("%d streams, want one and one more for each reset but the last", got)
	}
}

// Memory that could not be had is asked for again when what there was is lost.
func TestLostMemoryMayGrowAgain(t *testing.T) {
	v := newMortal(t)
	v.onAlloc = func(nth int64) error {
		if nth == 2 {
			return syscall.ENOMEM
		}
		return nil
	}
	d := New(Config{Stager: v, Bytes: 2 * slotBytes})
	defer d.Close()
	s := take(t, d)
	if second, errno := d.Slot(false); second != nil || errno != 0 {
		t.Fatalf("a second slot: %v, %v; want none for now", second, errno)
	}
	s.Release()
	v.reset()
	take(t, d).Release()
}

func TestThreadsGoOnThroughResets(t *testing.T) {
	v := newMortal(t)
	d := New(Config{Stager: v, Bytes: 3 * slotBytes})
	defer d.Close()
	var wg sync.WaitGroup
	for range 4 {
		_, at := deviceMemory(t, 4096)
		wg.Go(func() {
			for i := range 200 {
				s, errno := d.Slot(true)
				if errno != 0 {
					t.Errorf("Slot: %v", errno)
					return
				}
				if errno := pass(s, at, 10, 'x'); errno != 0 && errno != syscall.EIO {
					t.Errorf("a copy: %v", errno)
				}
				s.Release()
				if i%40 == 0 {
					v.reset()
				}
			}
		})
	}
	wg.Wait()
	mem, at := deviceMemory(t, 4096)
	s := take(t, d)
	if errno := pass(s, at, 10, 'y'); errno != 0 || mem[9] != 'y' {
		t.Errorf("afterwards: %v, the device has %q", errno, mem[9])
	}
	s.Release()
}
