package core

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/connectors"
	"libphoenix/core/staging"
	"libphoenix/engine"
)

// stagedVendor has two devices, whose memory is this process's, and copies.
type stagedVendor struct {
	vendor
	missing error // of StageDevice
	check   func(DevAddr, uint64) error
	copies  *atomic.Int64
	failing *atomic.Bool // copies
}

func newStagedVendor() stagedVendor {
	return stagedVendor{copies: new(atomic.Int64), failing: new(atomic.Bool)}
}

func (v stagedVendor) StageDevice(ordinal int) error {
	if v.missing == nil && ordinal >= 2 {
		return fmt.Errorf("device %d: %w", ordinal, syscall.ENODEV)
	}
	return v.missing
}

func (v stagedVendor) CheckMemory(_ int, addr DevAddr, n uint64) error {
	if v.check != nil {
		return v.check(addr, n)
	}
	return nil
}

func (v stagedVendor) OpenStream(int) (connectors.Stream, error) { return &memoryStream{v: v}, nil }

type memoryStream struct {
	v    stagedVendor
	over uint64
}

func (*memoryStream) Alloc(n uint64) (uintptr, error) {
	mem, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	return uintptr(mem), err
}

func (*memoryStream) Free(host uintptr, n uint64) {
	_ = unix.MunmapPtr(*(*unsafe.Pointer)(unsafe.Pointer(&host)), uintptr(n))
}

func (s *memoryStream) Copy(toDevice bool, dev DevAddr, host uintptr, n uint64) error {
	if s.v.failing.Load() {
		return fmt.Errorf("copy: %w", syscall.EREMOTEIO)
	}
	to, from := bytesAt(HostAddr(dev), int(n)), bytesAt(HostAddr(host), int(n))
	if !toDevice {
		to, from = from, to
	}
	copy(to, from)
	s.v.copies.Add(1)
	s.over++
	return nil
}

func (s *memoryStream) Finished(bool) (uint64, error) { return s.over, nil }
func (*memoryStream) Close()                          {}

func withMode(m Mode) option { return func(cfg *Config) { cfg.Mode = m } }

// newAligned is newBuffer at an address that can be registered.
func newAligned(t testing.TB, n int) ([]byte, DevAddr) {
	t.Helper()
	buf, addr := newBuffer(t, n+page)
	skip := int(-addr % page)
	return buf[skip : skip+n], addr + DevAddr(skip)
}

func wantMapMode(t *testing.T, r *rig, id, want int) {
	t.Helper()
	if got, err := r.MapMode(id); err != nil || got != want {
		t.Errorf("MapMode(%d) = %d, %v, want %d", id, got, err, want)
	}
}

func TestFullModeNeverStages(t *testing.T) {
	r := newRig(t, withConnector(newStagedVendor()))
	r.nodes.onOpen = func() error { return syscall.ENOENT }
	wantError(t, "Open", r.Open(0), syscall.ENOENT, ReasonOpenNode)
	r.nodes.onOpen = nil
	r.open(0)
	wantMapMode(t, r, 0, MapFull)
}

func TestStagedDeviceNeedsNoNode(t *testing.T) {
	v := newStagedVendor()
	r := newRig(t, withConnector(v), withMode(ModeHostStaging))
	r.nodes.onOpen = func() error { t.Error("a node was opened"); return syscall.ENOENT }
	if got, err := r.FindDevice(1); got != 1 || err != nil {
		t.Errorf("FindDevice(1) = %d, %v", got, err)
	}
	_, err := r.FindDevice(2)
	wantError(t, "FindDevice(2)", err, syscall.ENODEV, ReasonFindDevice)
	wantError(t, "Open(2)", r.Open(2), syscall.ENODEV, ReasonOpenNode)
	_, err = r.MapMode(0)
	wantError(t, "MapMode before Open", err, syscall.ENODEV, ReasonNotOpen)
	_, err = r.MapMode(8)
	wantError(t, "MapMode(8)", err, syscall.EINVAL, ReasonBadDevice)
	r.open(0)
	wantMapMode(t, r, 0, MapHostStaging)
}

func TestStagedTransfers(t *testing.T) {
	const size = 3<<20 + 333
	v := newStagedVendor()
	r := newRig(t, withConnector(v), withMode(ModeHostStaging))
	r.open(1)
	f := newFile(t, size)
	buf, addr := newAligned(t, 4<<20)
	if host := r.register(1, addr, 4<<20); host != HostAddr(addr) {
		t.Errorf("target %#x, want the address %#x", host, addr)
	}
	if got, err := r.Transfer(engine.Read, fd(f), 1, addr, 7, size, 0); got != size || err != nil {
		t.Fatalf("Transfer: %d, %v", got, err)
	}
	wantPattern(t, buf[7:7+size], 0)
	if got, err := r.Transfer(engine.Read, fd(f), 1, addr, 0, 4<<20, 100); got != size-100 || err != nil {
		t.Fatalf("at the end of the file: %d, %v", got, err)
	}
	cpu, cpuAddr := newBuffer(t, 4096)
	reqs := []Request{
		{FD: fd(f), Device: 1, Buf: addr, Len: 2 << 20, Offset: 5},
		{FD: fd(f), Device: -1, Buf: cpuAddr, Len: 4096, Offset: 9},
		{FD: fd(f), Device: 1, Buf: addr + 3<<20, Len: 4096, Offset: size - 96},
		{FD: fd(f), Device: 1, Buf: addr + 4<<20, Len: 1},
	}
	for name, run := range map[string]func() (int, error){
		"sync": func() (int, error) { return r.Run(engine.Read, reqs) },
		"async": func() (int, error) {
			h, err := r.Submit(engine.Read, reqs)
			if err != nil {
				return 0, err
			}
			return r.Wait(h)
		},
	} {
		clear(buf)
		if failed, err := run(); failed != 2 || err != nil {
			t.Errorf("%s: %d failed, %v", name, failed, err)
		}
		for i, want := range []int64{2 << 20, 4096, 96, -int64(syscall.EFAULT)} {
			if reqs[i].Result != want {
				t.Errorf("%s: result %d is %d, want %d", name, i, reqs[i].Result, want)
			}
		}
		wantPattern(t, buf[:2<<20], 5)
		wantPattern(t, cpu, 9)
		wantPattern(t, buf[3<<20:3<<20+96], size-96)
	}
	v.failing.Store(true)
	_, err := r.Transfer(engine.Read, fd(f), 1, addr, 0, 4096, 0)
	wantError(t, "a copy fails", err, syscall.EREMOTEIO, ReasonKernel)
	v.failing.Store(false)
	before := v.copies.Load()
	if failed, err := r.Run(engine.Read, reqs[1:2]); failed != 0 || err != nil || v.copies.Load() != before {
		t.Errorf("a CPU buffer: %d failed, %v, %d copies", failed, err, v.copies.Load()-before)
	}
	if p := r.find(1, addr).pin; p.State != PinEmbedded || p.FD != -1 {
		t.Errorf("pin state %d, fd %d: something would be due at exit", p.State, p.FD)
	}
	r.deregister(1, addr, 4<<20)
	_, err = r.Transfer(engine.Read, fd(f), 1, addr, 0, 16, 0)
	wantError(t, "after Deregister", err, syscall.EFAULT, ReasonUnregistered)
}

func TestStagedRegistrationIsOfDeviceMemoryOnly(t *testing.T) {
	v := newStagedVendor()
	v.check = func(DevAddr, uint64) error { return fmt.Errorf("not the device's: %w", syscall.EFAULT) }
	r := newRig(t, withConnector(v), withMode(ModeHostStaging))
	r.open(0)
	_, err := r.Register(0, page, page)
	wantError(t, "Register", err, syscall.EFAULT, ReasonMap)
}

func TestVendorWithoutStaging(t *testing.T) {
	for _, m := range []Mode{ModeHostStaging, ModeAuto} {
		r := newRig(t, withMode(m))
		r.nodes.onOpen = func() error { return syscall.ENOENT }
		wantError(t, "Open", r.Open(0), syscall.ENODEV, ReasonOpenNode)
	}
}

func TestAutoDecidesOnceByTheFirstSuccess(t *testing.T) {
	noNode := func() error { return syscall.ENOENT }
	noDriver := fmt.Errorf("no driver: %w", syscall.ENODEV)
	t.Run("node", func(t *testing.T) {
		r := newRig(t, withConnector(newStagedVendor()), withMode(ModeAuto))
		r.open(0)
		wantMapMode(t, r, 0, MapFull)
		r.nodes.onOpen = noNode
		wantError(t, "no other node", r.Open(1), syscall.ENOENT, ReasonOpenNode)
	})
	t.Run("no node", func(t *testing.T) {
		r := newRig(t, withConnector(newStagedVendor()), withMode(ModeAuto))
		r.nodes.onOpen = noNode
		r.open(0)
		r.nodes.onOpen = nil
		r.open(1) // a node that comes later is not used
		wantMapMode(t, r, 0, MapHostStaging)
		wantMapMode(t, r, 1, MapHostStaging)
	})
	t.Run("find, node", func(t *testing.T) {
		v := newStagedVendor()
		v.find = func(int) (int, error) { return 5, nil }
		r := newRig(t, withConnector(v), withMode(ModeAuto))
		if got, err := r.FindDevice(0); got != 5 || err != nil {
			t.Errorf("FindDevice = %d, %v", got, err)
		}
		r.open(5)
		wantMapMode(t, r, 5, MapFull)
	})
	t.Run("find, no node", func(t *testing.T) {
		v := newStagedVendor()
		v.find = func(int) (int, error) { return 5, nil }
		r := newRig(t, withConnector(v), withMode(ModeAuto))
		r.nodes.onOpen = noNode
		if got, err := r.FindDevice(0); got != 0 || err != nil {
			t.Errorf("FindDevice = %d, %v", got, err)
		}
		r.open(0)
		wantMapMode(t, r, 0, MapHostStaging)
	})
	t.Run("nothing works yet", func(t *testing.T) {
		v := newStagedVendor()
		v.missing = noDriver
		v.find = func(int) (int, error) { return 0, noDriver }
		r := newRig(t, withConnector(v), withMode(ModeAuto))
		r.nodes.onOpen = noNode
		_, err := r.FindDevice(0)
		wantError(t, "FindDevice", err, syscall.ENODEV, ReasonFindDevice)
		wantError(t, "Open", r.Open(0), syscall.ENODEV, ReasonOpenNode)
		r.nodes.onOpen = nil // the module is loaded
		r.open(0)
		wantMapMode(t, r, 0, MapFull)
	})
	t.Run("no descriptor says nothing about nodes", func(t *testing.T) {
		r := newRig(t, withConnector(newStagedVendor()), withMode(ModeAuto))
		r.nodes.onOpen = func() error { return syscall.EMFILE }
		wantError(t, "Open", r.Open(0), syscall.EMFILE, ReasonOpenNode)
		_, err := r.FindDevice(0)
		wantError(t, "FindDevice", err, syscall.EMFILE, ReasonFindDevice)
		r.nodes.onOpen = nil
		r.open(0)
		wantMapMode(t, r, 0, MapFull)
	})
}

// Threads that find different things all take the one decision.
func TestAutoIsOneDecisionForAllThreads(t *testing.T) {
	for range 50 {
		r := newRig(t, withConnector(newStagedVendor()), withMode(ModeAuto))
		var turn atomic.Int64
		r.nodes.onOpen = func() error {
			if turn.Add(1)%2 == 0 {
				return syscall.ENOENT
			}
			return nil
		}
		var group sync.WaitGroup
		for id := range 2 {
			group.Go(func() { _ = r.Open(id) })
		}
		group.Wait()
		staged := 0
		for id := range 2 {
			if mode, err := r.MapMode(id); err == nil {
				_, isStaged := r.devices[id].node.(stagedNode)
				if isStaged != (mode == MapHostStaging) {
					t.Errorf("device %d says mode %d", id, mode)
				}
				staged += mode
			}
		}
		if staged == MapHostStaging && r.state(0) == deviceOpen && r.state(1) == deviceOpen {
			t.Error("one device is staged, the other is not")
		}
	}
}

func TestOpenFindsNoRoomForTheThreadsOfStaging(t *testing.T) {
	room := 2*staging.Threads - 1
	r := newRig(t, withConnector(newStagedVendor()), withMode(ModeHostStaging), func(c *Config) {
		c.Room = func(threads int) bool { return threads <= room }
	})
	r.open(0)
	wantError(t, "the second device", r.Open(1), syscall.EAGAIN, ReasonOpenNode)
	if err := r.Close(0); err != nil {
		t.Fatal(err)
	}
	r.open(1) // the first one's threads are gone
	room++
	r.open(0)
}

func TestForkedChildStagesAsItsParent(t *testing.T) {
	parent := newRig(t, withConnector(newStagedVendor()), withMode(ModeAuto))
	parent.nodes.onOpen = func() error { return syscall.ENOENT }
	parent.open(0)
	buf, addr := newAligned(t, page)
	parent.register(0, addr, page)
	child := parent.forked(withConnector(newStagedVendor()), withMode(ModeAuto))
	f := newFile(t, page)
	if got, err := child.Transfer(engine.Read, fd(f), 0, addr, 0, page, 0); got != page || err != nil {
		t.Fatalf("the child's read: %d, %v", got, err)
	}
	wantPattern(t, buf, 0)
	if got, err := child.MapMode(0); got != MapHostStaging || err != nil {
		t.Errorf("the child's mode: %d, %v", got, err)
	}
}

func TestForkedChildWithoutTheDriver(t *testing.T) {
	parent := newRig(t, withConnector(newStagedVendor()), withMode(ModeHostStaging))
	parent.open(0)
	_, addr := newAligned(t, page)
	parent.register(0, addr, page)
	dead := newStagedVendor()
	dead.missing = fmt.Errorf("the parent initialised the driver: %w", syscall.ENODEV)
	child := parent.forked(withConnector(dead), withMode(ModeHostStaging))
	f := newFile(t, page)
	_, err := child.Transfer(engine.Read, fd(f), 0, addr, 0, page, 0)
	wantError(t, "the child's read", err, syscall.ENODEV, ReasonKernel)
}

func TestLastCloseGivesSlotsBack(t *testing.T) {
	r := newRig(t, withConnector(newStagedVendor()), withMode(ModeHostStaging))
	f := newFile(t, page)
	_, addr := newAligned(t, page)
	for range 3 {
		r.open(0)
		r.register(0, addr, page)
		if _, err := r.Transfer(engine.Read, fd(f), 0, addr, 0, page, 0); err != nil {
			t.Fatal(err)
		}
		device := r.devices[0].node.(stagedNode).Device
		if device.Bytes() == 0 || device.Bytes() > staging.DefaultBytes {
			t.Errorf("%d bytes of slots", device.Bytes())
		}
		if err := r.Close(0); err != nil { // the leak checker sees the threads
			t.Fatal(err)
		}
	}
}
