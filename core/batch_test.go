package core

import (
	"math"
	"syscall"
	"testing"
	"unsafe"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

const efault = -int64(syscall.EFAULT)

// badRequests are all the ways a request can fail before any I/O, given that
// device 0 is open with a registration at 2*page..4*page and device 1 is not.
func badRequests(cpu DevAddr) map[string]Request {
	return map[string]Request{
		"negative file offset":            {Device: 0, Buf: 2 * page, Len: 1, Offset: -1},
		"file overflow":                   {Device: 0, Buf: 2 * page, Len: 2, Offset: math.MaxInt64 - 1},
		"length above 63 bits":            {Device: 0, Buf: 2 * page, Len: 1 << 63},
		"all ones length":                 {Device: 0, Buf: 2 * page, Len: math.MaxUint64, Offset: 1},
		"negative buffer offset":          {Device: 0, Buf: 3 * page, Len: 1, BufOffset: -1},
		"unregistered":                    {Device: 0, Buf: page, Len: 1},
		"unregistered, 0 bytes":           {Device: 0, Buf: page},
		"NULL":                            {Device: 0},
		"0 bytes at the end by buf":       {Device: 0, Buf: 4 * page},
		"past the end":                    {Device: 0, Buf: 3 * page, Len: page + 1},
		"past the end by buffer offset":   {Device: 0, Buf: 3 * page, BufOffset: page, Len: 1},
		"huge buffer offset":              {Device: 0, Buf: 3 * page, BufOffset: math.MaxInt64},
		"device id 8":                     {Device: 8, Buf: 2 * page, Len: 1},
		"device id huge":                  {Device: math.MaxInt32, Buf: 2 * page, Len: 1},
		"closed device":                   {Device: 1, Buf: 2 * page, Len: 1},
		"CPU NULL":                        {Device: -1, Len: 1},
		"CPU NULL, 0 bytes":               {Device: -1},
		"CPU NULL with an offset":         {Device: -1, BufOffset: int64(cpu), Len: 1},
		"CPU negative buffer offset":      {Device: -1, Buf: cpu, BufOffset: -1, Len: 1},
		"CPU address overflow":            {Device: -1, Buf: ^DevAddr(0), Len: 2},
		"CPU buffer offset overflow":      {Device: -1, Buf: ^DevAddr(0), BufOffset: math.MaxInt64},
		"CPU negative file offset":        {Device: -2, Buf: cpu, Len: 1, Offset: math.MinInt64},
		"CPU file overflow":               {Device: -2, Buf: cpu, Len: math.MaxInt64, Offset: 1},
		"CPU negative file offset, empty": {Device: -1, Buf: cpu, Offset: -1},
	}
}

func TestEveryPreCheckFailureOfABatchIsEFAULT(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, 2*page, 2*page)
	f := newFile(t, page)
	_, cpu := newBuffer(t, page)
	good := Request{FD: fd(f), Device: -1, Buf: cpu, Len: 100, Result: 77}
	for name, bad := range badRequests(cpu) {
		bad.FD, bad.Result = fd(f), 77
		// Alone, and between others that must not suffer.
		reqs := []Request{bad}
		if failed, err := r.Run(engine.Read, reqs); failed != 1 || err != nil || reqs[0].Result != efault {
			t.Errorf("%s alone: %d, %v, result %d", name, failed, err, reqs[0].Result)
		}
		reqs = []Request{bad, good, bad, bad, good, bad}
		failed, err := r.Run(engine.Read, reqs)
		if failed != 4 || err != nil {
			t.Errorf("%s: %d, %v; want 4 failed", name, failed, err)
		}
		for i, want := range []int64{efault, 100, efault, efault, 100, efault} {
			if reqs[i].Result != want {
				t.Errorf("%s: result %d is %d, want %d", name, i, reqs[i].Result, want)
			}
		}
	}
	r.checkIdle()
}

func TestBatchMovesEachRequestToItsPlace(t *testing.T) {
	for _, n := range []int{1, 2, smallOps, smallOps + 1, 300, 3000} {
		r := newRig(t, withOwnLedger())
		r.open(0)
		r.open(1)
		f := newFile(t, 8*page)
		hosts := []HostAddr{r.register(0, page, 4*page), r.register(0, 5*page, 4*page), r.register(1, page, 4*page)}
		cpu, cpuAddr := newBuffer(t, 4*page)
		const step = 64
		reqs := make([]Request, n)
		for i := range reqs {
			q := Request{FD: fd(f), Len: step, Offset: int64(i) * step}
			switch i % 4 {
			case 0:
				q.Buf, q.BufOffset = page, int64(i)*step
			case 1:
				q.Buf = 5*page + DevAddr(i)*step
			case 2:
				q.Device, q.Buf, q.BufOffset = 1, page+DevAddr(i)*step/2, int64(i)*step/2
			case 3:
				q.Device, q.Buf, q.BufOffset = -1-int32(i), cpuAddr, int64(i)*step
			}
			reqs[i] = q
		}
		if failed, err := r.Run(engine.Read, reqs); failed != 0 || err != nil {
			t.Fatalf("n=%d: %d, %v", n, failed, err)
		}
		for i := range reqs {
			if reqs[i].Result != step {
				t.Fatalf("n=%d: result %d is %d", n, i, reqs[i].Result)
			}
			got := cpu[:]
			if i%4 < 3 {
				got = bytesAt(hosts[i%4], 4*page)
			}
			wantPattern(t, got[i*step:(i+1)*step], i*step)
		}
	}
}

func TestShortReadAtTheEndCountsAsFailedWithItsPartialCount(t *testing.T) {
	log := &events{max: LevelDebug}
	r := newRig(t, withLog(log))
	f := newFile(t, 1000)
	_, cpu := newBuffer(t, page)
	reqs := []Request{
		{FD: fd(f), Device: -1, Buf: cpu, Len: 600, Offset: 0},
		{FD: fd(f), Device: -1, Buf: cpu, Len: 600, Offset: 600},
		{FD: fd(f), Device: -1, Buf: cpu, Len: 600, Offset: 1000},
		{FD: -1, Device: -1, Buf: cpu, Len: 0}, // fine: 0 bytes need no descriptor
		{FD: -1, Device: -1, Buf: cpu, Len: 5},
	}
	failed, err := r.Run(engine.Read, reqs)
	if failed != 3 || err != nil {
		t.Fatalf("%d, %v; want 3 failed", failed, err)
	}
	for i, want := range []int64{600, 400, 0, 0, -int64(syscall.EBADF)} {
		if reqs[i].Result != want {
			t.Errorf("result %d is %d, want %d", i, reqs[i].Result, want)
		}
	}
	if d, e := log.at(LevelDebug), log.at(LevelError); len(d) != 2 || len(e) != 1 || e[0].Errno != syscall.EBADF {
		t.Errorf("debug events %+v, errors %+v", d, e)
	}
}

func TestBatchWithoutMemoryForItsOpsIsENOMEMAndTouchesNothing(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, page, page)
	mapMem := r.arrays.mapMem
	r.arrays.mapMem = func(uintptr) unsafe.Pointer { return nil }
	reqs := make([]Request, smallOps+1)
	for i := range reqs {
		reqs[i] = Request{FD: -1, Buf: page, Len: 1, Result: 77}
	}
	_, err := r.Run(engine.Read, reqs)
	wantError(t, "Run", err, syscall.ENOMEM, ReasonNoMemory)
	_, err = r.Submit(engine.Read, reqs)
	wantError(t, "Submit", err, syscall.ENOMEM, ReasonNoMemory)
	for i := range reqs {
		if reqs[i].Result != 77 {
			t.Fatalf("result %d written", i)
		}
	}
	r.checkIdle()
	r.arrays.mapMem = mapMem
	// The tickets were given back: later batches, async ones too, get theirs.
	h, err := r.Submit(engine.Read, reqs)
	if err != nil {
		t.Fatal(err)
	}
	if failed, err := r.Wait(h); failed != len(reqs) || err != nil {
		t.Fatalf("Wait = %d, %v", failed, err)
	}
}

func TestRequestsAreReadOnceAndOnlyResultIsWritten(t *testing.T) {
	r := newRig(t)
	f := newFile(t, page)
	_, cpu := newBuffer(t, page)
	b := fault.NewBarrier()
	r.script.Add(fault.On(engine.Read).Late(b))
	reqs := make([]Request, 20)
	for i := range reqs {
		reqs[i] = Request{FD: fd(f), Device: -1, Buf: cpu, Len: 10, Offset: int64(i)}
	}
	reqs[7].Buf = 0
	done := async(func() int { failed, _ := r.Run(engine.Read, reqs); return failed })
	b.WaitParked(1)
	scrambled := Request{FD: 1 << 20, Device: 5, Buf: 1, BufOffset: -1, Len: 1 << 40, Offset: -5, Result: 77}
	for i := range reqs {
		reqs[i] = scrambled
	}
	b.Release()
	if failed := <-done; failed != 1 {
		t.Fatalf("failed %d, want 1: the array was read again", failed)
	}
	for i, q := range reqs {
		want := scrambled
		want.Result = 10
		if i == 7 {
			want.Result = efault
		}
		if q != want {
			t.Fatalf("request %d is %+v, want %+v", i, q, want)
		}
	}
}

func TestRunsOfOneRegistrationEnterItsGateOnce(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, page, page)
	r.register(0, 2*page, page)
	f := newFile(t, page)
	_, cpu := newBuffer(t, page)
	b := fault.NewBarrier()
	r.script.Add(fault.On(engine.Read).Late(b))
	at := func(buf DevAddr, dev int32) Request { return Request{FD: fd(f), Device: dev, Buf: buf, Len: 1} }
	x, y, c, bad := at(page, 0), at(2*page, 0), at(cpu, -1), at(9*page, 0)
	done := async(func() int {
		failed, _ := r.Run(engine.Read, []Request{x, x, bad, x, y, y, x, c, x, x, y})
		return failed
	})
	b.WaitParked(1)
	if n := r.find(0, page).gate().Users(); n != 3 {
		t.Errorf("x entered %d times, want 3", n)
	}
	if n := r.find(0, 2*page).gate().Users(); n != 2 {
		t.Errorf("y entered %d times, want 2", n)
	}
	b.Release()
	if failed := <-done; failed != 1 {
		t.Errorf("failed %d, want 1", failed)
	}
}

func TestBatchOfUnresolvableRequestsDoesNoIO(t *testing.T) {
	r := newRig(t)
	reqs := make([]Request, 3000) // more than one resolveChunk
	failed, err := r.Run(engine.Write, reqs)
	if failed != 3000 || err != nil || r.script.Calls() != 0 {
		t.Fatalf("%d, %v, %d calls", failed, err, r.script.Calls())
	}
	for i := range reqs {
		if reqs[i].Result != efault {
			t.Fatalf("result %d is %d", i, reqs[i].Result)
		}
	}
}
