package core

import (
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"libphoenix/connectors"
)

// vendor is a connector of a made-up vendor with device nodes.
type vendor struct{ find func(int) (int, error) }

func (vendor) Name() string     { return "FAKE" }
func (vendor) PageSize() uint64 { return page }
func (v vendor) FindDevice(ordinal int) (int, error) {
	if v.find != nil {
		return v.find(ordinal)
	}
	return ordinal % Devices, nil
}

// embeddedVendor is one whose device memory is this process's.
type embeddedVendor struct {
	vendor
	check func(DevAddr, uint64) error
}

func (v embeddedVendor) CheckRange(addr DevAddr, n uint64) error {
	if v.check != nil {
		return v.check(addr, n)
	}
	return nil
}

// livingVendor answers Identity as the test says.
type livingVendor struct {
	vendor
	identity func(DevAddr, uint64) (uint64, connectors.LifeState)
}

func (v livingVendor) Identity(addr DevAddr, n uint64) (uint64, connectors.LifeState) {
	return v.identity(addr, n)
}
func (livingVendor) IdentityFunc() uintptr { return 0 }

// fakeNodes makes nodes that map anonymous memory and keep the kernel's books:
// what the real module would answer with a use-after-free fails the test.
type fakeNodes struct {
	t testing.TB

	// Hooks, set before use; nil: success. Called without locks.
	onOpen, onClose              func() error
	onMap                        func(DevAddr) error
	onUnmap                      func(DevAddr) error
	onMunmap                     func(HostAddr) error
	opens, closes                atomic.Int64
	maps, unmaps, munmaps, spare atomic.Int64 // successes; spare: UNMAPs left out

	mu     sync.Mutex
	pinned map[HostAddr]bool // mapped; true: UNMAP is due
}

func (f *fakeNodes) open(string, int) (Node, error) {
	if f.onOpen != nil {
		if err := f.onOpen(); err != nil {
			return nil, err
		}
	}
	f.opens.Add(1)
	return &fakeNode{f}, nil
}

type fakeNode struct{ f *fakeNodes }

func (n *fakeNode) Map(addr DevAddr, lenBytes uint64) (HostAddr, error) {
	f := n.f
	if f.onMap != nil {
		if err := f.onMap(addr); err != nil {
			return 0, err
		}
	}
	mem := mapMemory(uintptr(lenBytes))
	if mem == nil {
		return 0, syscall.ENOMEM
	}
	host := HostAddr(mem)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pinned[host] = true
	f.maps.Add(1)
	return host, nil
}

func (n *fakeNode) Unmap(addr DevAddr, host HostAddr, _ uint64) error {
	f := n.f
	if f.onUnmap != nil {
		if err := f.onUnmap(addr); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.pinned[host] {
		f.t.Errorf("second UNMAP of %#x: a use-after-free in the kernel", host)
	}
	f.pinned[host] = false
	f.unmaps.Add(1)
	return nil
}

func (n *fakeNode) Munmap(host HostAddr, lenBytes uint64) error {
	f := n.f
	if f.onMunmap != nil {
		if err := f.onMunmap(host); err != nil {
			return err
		}
	}
	f.mu.Lock()
	due, known := f.pinned[host]
	delete(f.pinned, host)
	f.mu.Unlock()
	if !known {
		f.t.Errorf("munmap of %#x, which is not mapped", host)
		return syscall.EINVAL
	}
	if due {
		f.spare.Add(1)
	}
	f.munmaps.Add(1)
	_, _, errno := syscall.Syscall(syscall.SYS_MUNMAP, uintptr(host), uintptr(lenBytes), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (n *fakeNode) FD() int { return 1 << 20 }
func (n *fakeNode) Close() error {
	n.f.closes.Add(1)
	if n.f.onClose != nil {
		return n.f.onClose()
	}
	return nil
}

// heapLedger keeps Pins where the race detector sees them.
type heapLedger struct {
	taken, given, pinned atomic.Int64
	full                 atomic.Bool
}

func (g *heapLedger) Take() *Pin {
	if g.full.Load() {
		return nil
	}
	g.taken.Add(1)
	return new(Pin)
}
func (g *heapLedger) Give(*Pin)       { g.given.Add(1) }
func (g *heapLedger) Pinned()         { g.pinned.Add(1) }
func (g *heapLedger) Opened(int, int) {}

// events is a Logger that remembers.
type events struct {
	max Level
	mu  sync.Mutex
	all []Event
}

func (e *events) Enabled(at Level) bool { return at <= e.max }
func (e *events) Event(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

// at returns the events of one level.
func (e *events) at(level Level) (out []Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.all {
		if ev.Level == level {
			out = append(out, ev)
		}
	}
	return out
}
