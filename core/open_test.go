package core

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

func TestOpenAndCloseRefuseBadIds(t *testing.T) {
	r := newRig(t)
	for _, id := range []int{-1, 8, -1 << 31, 1 << 31} {
		wantError(t, "Open", r.Open(id), syscall.EINVAL, ReasonBadDevice)
		wantError(t, "Close", r.Close(id), syscall.EINVAL, ReasonBadDevice)
	}
}

func TestCloseOfADeviceThatIsNotOpenIsENODEV(t *testing.T) {
	r := newRig(t)
	wantError(t, "Close", r.Close(0), syscall.ENODEV, ReasonNotOpen)
	r.open(0)
	if err := r.Close(0); err != nil {
		t.Fatal(err)
	}
	wantError(t, "second Close", r.Close(0), syscall.ENODEV, ReasonNotOpen)
}

func TestOpenIsCountedAndOpensTheNodeOnce(t *testing.T) {
	r := newRig(t)
	for range 3 {
		r.open(5)
	}
	for i := range 3 {
		if got := r.nodes.closes.Load(); got != 0 {
			t.Fatalf("node closed after %d of 3 closes", i)
		}
		if err := r.Close(5); err != nil {
			t.Fatal(err)
		}
	}
	if o, c := r.nodes.opens.Load(), r.nodes.closes.Load(); o != 1 || c != 1 {
		t.Fatalf("node opened %d times, closed %d times; want 1, 1", o, c)
	}
}

func TestFailedOpenCarriesTheKernelsErrnoAndCanBeRetried(t *testing.T) {
	r := newRig(t)
	r.nodes.onOpen = func() error { return syscall.EBUSY }
	wantError(t, "Open", r.Open(0), syscall.EBUSY, ReasonOpenNode)
	wantError(t, "Close", r.Close(0), syscall.ENODEV, ReasonNotOpen)
	r.nodes.onOpen = nil
	r.open(0)
}

func TestConcurrentOpensShareOneNode(t *testing.T) {
	r := newRig(t)
	started, proceed := make(chan bool), make(chan bool)
	r.nodes.onOpen = func() error { started <- true; <-proceed; return nil }
	first := async(func() error { return r.Open(1) })
	<-started
	second := async(func() error { return r.Open(1) })
	wantError(t, "Close while opening", r.Close(1), syscall.ENODEV, ReasonNotOpen)
	_, err := r.Register(1, page, page)
	wantError(t, "Register while opening", err, syscall.ENODEV, ReasonNotOpen)
	close(proceed)
	if e1, e2 := <-first, <-second; e1 != nil || e2 != nil {
		t.Fatalf("Open: %v, %v", e1, e2)
	}
	if got := r.nodes.opens.Load(); got != 1 {
		t.Fatalf("node opened %d times, want 1", got)
	}
	if r.devices[1].opens != 2 {
		t.Fatalf("opens %d, want 2", r.devices[1].opens)
	}
	_ = r.Close(1)
}

func TestManyConcurrentOpensAndClosesNeverHoldTwoNodes(t *testing.T) {
	r := newRig(t)
	var nodes atomic.Int64
	r.nodes.onOpen = func() error {
		if n := nodes.Add(1); n != 1 {
			t.Errorf("%d nodes at once", n)
		}
		runtime.Gosched()
		return nil
	}
	r.nodes.onClose = func() error { nodes.Add(-1); return nil }
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 300 {
				switch err := r.Open(1); {
				case err == nil:
					if err := r.Close(1); err != nil {
						t.Errorf("Close of an open device: %v", err)
					}
				case !errors.Is(err, errClosingOpen):
					t.Errorf("Open: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestOpenThatWaitedForAFailedOpenTriesItself(t *testing.T) {
	r := newRig(t)
	started, proceed := make(chan bool, 2), make(chan bool)
	var calls atomic.Int64
	r.nodes.onOpen = func() error {
		started <- true
		<-proceed
		if calls.Add(1) == 1 {
			return syscall.ENOENT
		}
		return nil
	}
	first := async(func() error { return r.Open(1) })
	<-started
	second := async(func() error { return r.Open(1) })
	close(proceed)
	wantError(t, "first Open", <-first, syscall.ENOENT, ReasonOpenNode)
	if err := <-second; err != nil {
		t.Fatalf("second Open: %v", err)
	}
}

// drainingDevice leaves device 0 in its last close, which waits for a read
// that the barrier holds inside the registration at page.
func drainingDevice(t *testing.T, r *rig) (b *fault.Barrier, closed chan error, read chan int) {
	t.Helper()
	b = fault.NewBarrier()
	r.script.Add(fault.On(engine.Read).Late(b))
	f := newFile(t, page)
	r.open(0)
	r.register(0, page, page)
	read = async(func() int {
		failed, _ := r.Run(engine.Read, []Request{{FD: fd(f), Buf: page, Len: page}})
		return failed
	})
	b.WaitParked(1)
	r.nodes.onUnmap = func(DevAddr) error {
		if b.Parked() != 0 {
			t.Error("UNMAP with I/O inside")
		}
		return nil
	}
	closed = async(func() error { return r.Close(0) })
	until(func() bool { return r.state(0) == deviceClosing })
	return b, closed, read
}

func TestLastCloseWaitsForSyncBatchAndRefusesEverythingMeanwhile(t *testing.T) {
	r := newRig(t)
	b, closed, read := drainingDevice(t, r)

	wantError(t, "Open", r.Open(0), syscall.EBUSY, ReasonClosing)
	wantError(t, "Close", r.Close(0), syscall.ENODEV, ReasonNotOpen)
	_, err := r.Register(0, 4*page, page)
	wantError(t, "Register", err, syscall.ESHUTDOWN, ReasonClosing)
	wantError(t, "Deregister", r.Deregister(0, page, page), syscall.ESHUTDOWN, ReasonClosing)
	_, err = r.Transfer(engine.Read, 0, 0, page, 0, 1, 0)
	wantError(t, "Transfer", err, syscall.ESHUTDOWN, ReasonClosing)
	reqs := []Request{{Buf: page, Len: 1, Result: 77}}
	if failed, err := r.Run(engine.Read, reqs); failed != 1 || err != nil || reqs[0].Result != -int64(syscall.EFAULT) {
		t.Fatalf("Run = %d, %v, result %d", failed, err, reqs[0].Result)
	}

	b.Release()
	if err := <-closed; err != nil {
		t.Fatalf("Close: %v", err)
	}
	if failed := <-read; failed != 0 {
		t.Fatalf("the read inside failed")
	}
	if u, m := r.nodes.unmaps.Load(), r.nodes.munmaps.Load(); u != 1 || m != 1 {
		t.Fatalf("UNMAPs %d, munmaps %d; want 1, 1", u, m)
	}
	r.open(0)
}

func TestLastCloseWaitsForAsyncBatchButNotForItsWait(t *testing.T) {
	r := newRig(t)
	b := fault.NewBarrier()
	r.script.Add(fault.On(engine.Read).Late(b))
	f := newFile(t, page)
	r.open(0)
	host := r.register(0, page, page)
	_ = host
	reqs := []Request{{FD: fd(f), Buf: page, Len: page, Result: 77}}
	h, err := r.Submit(engine.Read, reqs)
	if err != nil {
		t.Fatal(err)
	}
	r.nodes.onUnmap = func(DevAddr) error {
		if b.Parked() != 0 {
			t.Error("UNMAP with I/O inside")
		}
		return nil
	}
	b.WaitParked(1)
	closed := async(func() error { return r.Close(0) })
	until(func() bool { return r.state(0) == deviceClosing })
	b.Release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if reqs[0].Result != 77 {
		t.Fatalf("result %d written before wait", reqs[0].Result)
	}
	if failed, err := r.Wait(h); failed != 0 || err != nil || reqs[0].Result != page {
		t.Fatalf("Wait = %d, %v, result %d", failed, err, reqs[0].Result)
	}
}

func TestLastCloseUnmapsEveryRegistration(t *testing.T) {
	r := newRig(t)
	r.open(0)
	for i := range 100 {
		r.register(0, DevAddr(1+i)*2*page, page)
	}
	r.register(0, 2*page, page) // one more reference
	if err := r.Close(0); err != nil {
		t.Fatal(err)
	}
	if u, m := r.nodes.unmaps.Load(), r.nodes.munmaps.Load(); u != 100 || m != 100 {
		t.Fatalf("UNMAPs %d, munmaps %d; want 100", u, m)
	}
}

func TestLastCloseWhoseUnmapFailsDoesTheRestAndReportsTheErrno(t *testing.T) {
	log := &events{max: LevelDebug}
	r := newRig(t, withLog(log))
	r.open(0)
	for i := range 3 {
		r.register(0, DevAddr(1+i)*page, page)
	}
	r.nodes.onUnmap = func(a DevAddr) error {
		if a == 2*page {
			return syscall.EFAULT
		}
		return nil
	}
	wantError(t, "Close", r.Close(0), syscall.EFAULT, ReasonUnmap)
	if u, m, c := r.nodes.unmaps.Load(), r.nodes.munmaps.Load(), r.nodes.closes.Load(); u != 2 || m != 3 || c != 1 {
		t.Fatalf("UNMAPs %d, munmaps %d, closes %d; want 2, 3, 1", u, m, c)
	}
	wantError(t, "Close", r.Close(0), syscall.ENODEV, ReasonNotOpen)
	if got := log.at(LevelError); len(got) != 1 || got[0].Addr != 2*page || got[0].Errno != syscall.EFAULT {
		t.Fatalf("events %+v", got)
	}
	r.nodes.onUnmap = nil
	r.open(0)
	r.register(0, 2*page, page)
}

func TestLastCloseReportsMunmapAndNodeFailures(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, page, page)
	fail := true
	r.nodes.onMunmap = func(host HostAddr) error {
		if !fail {
			return nil
		}
		fail = false
		r.nodes.mu.Lock() // the fake's book: this mapping is lost
		delete(r.nodes.pinned, host)
		r.nodes.mu.Unlock()
		return syscall.ENOMEM
	}
	wantError(t, "Close", r.Close(0), syscall.ENOMEM, ReasonMunmap)
	r.open(0)
	r.nodes.onClose = func() error { return syscall.EIO }
	wantError(t, "Close", r.Close(0), syscall.EIO, ReasonCloseNode)
	r.nodes.onClose = nil
}

func TestLastCloseWaitsForRegmemInside(t *testing.T) {
	r := newRig(t)
	r.open(0)
	inside, proceed := make(chan bool), make(chan bool)
	r.nodes.onMap = func(DevAddr) error { inside <- true; <-proceed; return nil }
	registered := async(func() error { _, err := r.Register(0, page, page); return err })
	<-inside
	closed := async(func() error { return r.Close(0) })
	until(func() bool { return r.state(0) == deviceClosing })
	if r.nodes.closes.Load() != 0 {
		t.Fatal("node closed under a regmem")
	}
	close(proceed)
	if e1, e2 := <-registered, <-closed; e1 != nil || e2 != nil {
		t.Fatalf("Register: %v, Close: %v", e1, e2)
	}
	if u := r.nodes.unmaps.Load(); u != 1 {
		t.Fatalf("UNMAPs %d, want 1: the registration came with the close", u)
	}
}

func TestEmbeddedDevicesNeedNoNode(t *testing.T) {
	r := newRig(t, withConnector(embeddedVendor{}))
	var wg sync.WaitGroup
	for id := range Devices {
		wg.Go(func() { r.open(id) })
	}
	wg.Wait()
	if got := r.nodes.opens.Load(); got != 0 {
		t.Fatalf("%d nodes opened", got)
	}
	for id := range Devices {
		if err := r.Close(id); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDefaultNodesAreTheKernelModules(t *testing.T) {
	l := New(Config{Connector: vendor{}, DevDir: t.TempDir()})
	defer l.Shutdown()
	wantError(t, "Open", l.Open(0), syscall.ENOENT, ReasonOpenNode)
}
