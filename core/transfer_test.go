package core

import (
	"math"
	"syscall"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

func TestTransferErrorsAndTheirOrder(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, 2*page, 2*page)
	const bad = int32(-1) // descriptor: every row must fail before it is looked at
	for _, c := range []struct {
		name         string
		id           int32
		buf          DevAddr
		bufOff, n, f int64
		errno        syscall.Errno
		why          Reason
	}{
		{"negative length", 99, 0, 0, -1, 0, syscall.EINVAL, ReasonNegativeLength},
		{"negative offset", 99, 0, 0, 1, -1, syscall.EINVAL, ReasonNegativeOffset},
		{"file overflow", 99, 0, 0, 2, math.MaxInt64 - 1, syscall.EINVAL, ReasonFileRange},
		{"CPU, negative buffer offset", -1, page, -1, 1, 0, syscall.EINVAL, ReasonCPUAddress},
		{"CPU, negative buffer offset, 0 bytes", -7, page, -1, 0, 0, syscall.EINVAL, ReasonCPUAddress},
		{"CPU, address overflow", -1, ^DevAddr(0), 0, 2, 0, syscall.EINVAL, ReasonCPUAddress},
		{"CPU, offset overflow", -1, ^DevAddr(0), 1, 1, 0, syscall.EINVAL, ReasonCPUAddress},
		{"bad device", 8, 2 * page, 0, 1, 0, syscall.EINVAL, ReasonBadDevice},
		{"bad device, 0 bytes", 8, 2 * page, 0, 0, 0, syscall.EINVAL, ReasonBadDevice},
		{"device not open", 1, 2 * page, 0, 1, 0, syscall.ENODEV, ReasonNotOpen},
		{"device not open, 0 bytes", 1, 2 * page, 0, 0, 0, syscall.ENODEV, ReasonNotOpen},
		{"below every registration", 0, page, 0, 1, 0, syscall.EFAULT, ReasonUnregistered},
		{"NULL", 0, 0, 0, 0, 0, syscall.EFAULT, ReasonUnregistered},
		{"past the registration", 0, 4 * page, 0, 0, 0, syscall.EFAULT, ReasonUnregistered},
		{"negative buffer offset", 0, 3 * page, -1, 1, 0, syscall.EINVAL, ReasonBufOffset},
		{"reaches outside", 0, 3 * page, 0, page + 1, 0, syscall.EFAULT, ReasonOutside},
		{"starts outside", 0, 3 * page, page + 1, 0, 0, syscall.EFAULT, ReasonOutside},
		{"huge buffer offset", 0, 3 * page, math.MaxInt64, 1, 0, syscall.EFAULT, ReasonOutside},
		{"huge length", 0, 3 * page, 0, math.MaxInt64, 0, syscall.EFAULT, ReasonOutside},
	} {
		for _, k := range []engine.Kind{engine.Read, engine.Write} {
			n, err := r.Transfer(k, bad, c.id, c.buf, c.bufOff, c.n, c.f)
			wantError(t, c.name, err, c.errno, c.why)
			if n != 0 {
				t.Fatalf("%s: %d bytes with an error", c.name, n)
			}
			wantClass := ClassDevice
			if c.why <= ReasonCPUAddress {
				wantClass = ClassArgument
			}
			if c.why.Class() != wantClass {
				t.Fatalf("%s: class %d, want %d", c.name, c.why.Class(), wantClass)
			}
		}
	}
	if got := r.single.Calls(); got != 0 {
		t.Fatalf("%d system calls", got)
	}
}

func TestZeroBytesNeedNoDescriptor(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, page, page)
	for _, c := range []struct {
		id     int32
		buf    DevAddr
		bufOff int64
	}{{-1, page, 5}, {-1, 0, 0}, {0, page, 0}, {0, page, page}, {0, 2*page - 1, 1}} {
		if n, err := r.Transfer(engine.Read, -1, c.id, c.buf, c.bufOff, 0, 0); n != 0 || err != nil {
			t.Fatalf("%+v: %d, %v", c, n, err)
		}
	}
}

func TestTransferMovesTheRightBytes(t *testing.T) {
	r := newRig(t, withOwnLedger())
	r.open(0)
	f := newFile(t, 3*page)
	host := r.register(0, page, 2*page)
	if n, err := r.Transfer(engine.Read, fd(f), 0, page+100, 50, 1000, 70); n != 1000 || err != nil {
		t.Fatalf("device read: %d, %v", n, err)
	}
	wantPattern(t, bytesAt(host+150, 1000), 70)
	cpu, addr := newBuffer(t, page)
	if n, err := r.Transfer(engine.Read, fd(f), -1, addr, 8, 1000, 333); n != 1000 || err != nil {
		t.Fatalf("CPU read: %d, %v", n, err)
	}
	wantPattern(t, cpu[8:1008], 333)
	for i := range cpu {
		cpu[i] = pattern(5000 + i)
	}
	if n, err := r.Transfer(engine.Write, fd(f), -1, addr, 0, 100, 0); n != 100 || err != nil {
		t.Fatalf("CPU write: %d, %v", n, err)
	}
	if n, err := r.Transfer(engine.Read, fd(f), 0, page, 0, 100, 0); n != 100 || err != nil {
		t.Fatalf("read back: %d, %v", n, err)
	}
	wantPattern(t, bytesAt(host, 100), 5000)
}

func TestTransferIsShortAtTheEndOfTheFile(t *testing.T) {
	r := newRig(t)
	_, addr := newBuffer(t, page)
	f := newFile(t, 1000)
	if n, err := r.Transfer(engine.Read, fd(f), -1, addr, 0, page, 300); n != 700 || err != nil {
		t.Fatalf("across the end: %d, %v; want 700", n, err)
	}
	if n, err := r.Transfer(engine.Read, fd(f), -1, addr, 0, page, 1000); n != 0 || err != nil {
		t.Fatalf("at the end: %d, %v; want 0", n, err)
	}
}

func TestTransferKernelErrors(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, page, page)
	_, addr := newBuffer(t, page)
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe[0])
	defer syscall.Close(pipe[1])
	f := newFile(t, 10)
	for _, c := range []struct {
		name  string
		fd    int32
		id    int32
		buf   DevAddr
		errno syscall.Errno
	}{
		{"bad descriptor", -1, -1, addr, syscall.EBADF},
		{"bad descriptor, device", -1, 0, page, syscall.EBADF},
		{"pipe", int32(pipe[0]), -1, addr, syscall.ESPIPE},
		{"NULL buffer", fd(f), -1, 0, syscall.EFAULT},
	} {
		_, err := r.Transfer(engine.Read, c.fd, c.id, c.buf, 0, 8, 0)
		wantError(t, c.name, err, c.errno, ReasonKernel)
	}
	if ReasonKernel.Class() != ClassKernel {
		t.Fatal("class")
	}
}

func TestTransferGoesOnAfterShortCountsAndSignals(t *testing.T) {
	r := newRig(t)
	buf, addr := newBuffer(t, page)
	f := newFile(t, page)
	r.single.Add(
		fault.On(engine.Read).At(0).Nth(1).Fail(syscall.EINTR),
		fault.On(engine.Read).At(0).Short(1),
		fault.On(engine.Read).At(1).Nth(1).Fail(syscall.EINTR),
		fault.On(engine.Read).At(1).Short(4095),
		fault.On(engine.Read).At(4096).Nth(1).Fail(syscall.EINTR),
	)
	if n, err := r.Transfer(engine.Read, fd(f), -1, addr, 0, page, 0); n != page || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	wantPattern(t, buf, 0)
}

func TestProgressWinsOverALaterError(t *testing.T) {
	log := &events{max: LevelDebug}
	r := newRig(t, withLog(log))
	_, addr := newBuffer(t, page)
	f := newFile(t, page)
	r.single.Add(
		fault.On(engine.Read).At(0).Short(100),
		fault.On(engine.Read).At(100).Fail(syscall.EIO),
	)
	if n, err := r.Transfer(engine.Read, fd(f), -1, addr, 0, page, 0); n != 100 || err != nil {
		t.Fatalf("%d, %v; want 100 bytes", n, err)
	}
	if e := log.at(LevelDebug); len(e) != 1 || e[0].Errno != syscall.EIO || e[0].Call != "phxfs_read" {
		t.Fatalf("events %+v", e)
	}
	n, err := r.Transfer(engine.Read, fd(f), -1, addr, 0, page, 100)
	wantError(t, "no progress", err, syscall.EIO, ReasonKernel)
	if n != 0 {
		t.Fatalf("%d bytes", n)
	}
}

// recorder answers every call with all that was asked, and remembers it.
type recorder struct {
	lens []uint64
	offs []int64
	at   []HostAddr
}

func (r *recorder) Pread(_ int32, addr HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	r.lens, r.offs, r.at = append(r.lens, n), append(r.offs, off), append(r.at, addr)
	return int64(n), 0
}

func (r *recorder) Pwrite(fd int32, addr HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	return r.Pread(fd, addr, n, off)
}

func TestTransferAsksForAtMostOneGiBAtATime(t *testing.T) {
	r := newRig(t)
	rec := new(recorder)
	r.io = rec
	const n, off, addr = 5<<29 + 3, 7, 1 << 32 // 2.5 GiB and a bit
	if got, err := r.Transfer(engine.Write, 0, -1, addr, 0, n, off); got != n || err != nil {
		t.Fatalf("%d, %v", got, err)
	}
	want := recorder{
		lens: []uint64{1 << 30, 1 << 30, 1<<29 + 3},
		offs: []int64{off, off + 1<<30, off + 2<<30},
		at:   []HostAddr{addr, addr + 1<<30, addr + 2<<30},
	}
	for i := range want.lens {
		if len(rec.lens) != 3 || rec.lens[i] != want.lens[i] || rec.offs[i] != want.offs[i] || rec.at[i] != want.at[i] {
			t.Fatalf("calls %+v, want %+v", *rec, want)
		}
	}
}

func TestTransferNeedsNoEngine(t *testing.T) {
	r := newRig(t)
	r.newEngine = func() engine.Engine { t.Error("engine made"); return nil }
	_, addr := newBuffer(t, page)
	f := newFile(t, 10)
	if n, err := r.Transfer(engine.Read, fd(f), -1, addr, 0, 10, 0); n != 10 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
}
