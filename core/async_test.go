package core

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

func TestUnresolvableRequestsAreWrittenAtSubmitTheOthersByWait(t *testing.T) {
	r := newRig(t)
	f := newFile(t, page)
	_, cpu := newBuffer(t, page)
	good := Request{FD: fd(f), Device: -1, Buf: cpu, Len: 10, Result: 77}
	bad := Request{FD: fd(f), Device: 0, Buf: cpu, Len: 10, Result: 77}
	reqs := []Request{bad, good, good, bad, good, bad, bad}
	h, err := r.Submit(engine.Read, reqs)
	if err != nil || h == 0 || h >= 1<<56 {
		t.Fatalf("Submit = %#x, %v", h, err)
	}
	for i, want := range []int64{efault, 77, 77, efault, 77, efault, efault} {
		if reqs[i].Result != want {
			t.Fatalf("after submit: result %d is %d, want %d", i, reqs[i].Result, want)
		}
	}
	reqs[0].Result = 78 // written once: not again by wait
	failed, err := r.Wait(h)
	if failed != 4 || err != nil {
		t.Fatalf("Wait = %d, %v; want 4", failed, err)
	}
	for i, want := range []int64{78, 10, 10, efault, 10, efault, efault} {
		if reqs[i].Result != want {
			t.Fatalf("after wait: result %d is %d, want %d", i, reqs[i].Result, want)
		}
	}
}

func TestEmptyAndUnresolvableSubmitsGiveHandlesAndTakeNoSlot(t *testing.T) {
	r := newRig(t)
	f := newFile(t, page)
	_, cpu := newBuffer(t, page)
	b := fault.NewBarrier()
	r.script.Add(fault.On(engine.Read).Late(b))
	var full []Handle
	for range engine.MaxAsync {
		h, err := r.Submit(engine.Read, []Request{{FD: fd(f), Device: -1, Buf: cpu, Len: 1}})
		if err != nil {
			t.Fatal(err)
		}
		full = append(full, h)
	}
	for range 100 {
		h, err := r.Submit(engine.Read, nil)
		if err != nil {
			t.Fatalf("empty submit with a full queue: %v", err)
		}
		if failed, err := r.Wait(h); failed != 0 || err != nil {
			t.Fatalf("Wait of an empty batch = %d, %v", failed, err)
		}
		h, err = r.Submit(engine.Read, make([]Request, 3))
		if err != nil {
			t.Fatalf("unresolvable submit with a full queue: %v", err)
		}
		if failed, err := r.Wait(h); failed != 3 || err != nil {
			t.Fatalf("Wait of an unresolvable batch = %d, %v", failed, err)
		}
	}
	b.Release()
	for _, h := range full {
		if failed, err := r.Wait(h); failed != 0 || err != nil {
			t.Fatalf("Wait = %d, %v", failed, err)
		}
	}
}

func TestFullQueueIsEBUSYAndLeavesGatesAndResultsUntouched(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, page, page)
	r.register(0, 2*page, page)
	f := newFile(t, page)
	b := fault.NewBarrier()
	r.script.Add(fault.On(engine.Read).Late(b))
	one := func() []Request { return []Request{{FD: fd(f), Buf: page, Len: 1}} }
	var handles []Handle
	for range engine.MaxAsync {
		h, err := r.Submit(engine.Read, one())
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	if got := r.AsyncInFlight(); got != engine.MaxAsync {
		t.Fatalf("AsyncInFlight %d", got)
	}
	reqs := make([]Request, 30)
	for i := range reqs {
		reqs[i] = Request{FD: fd(f), Buf: 2 * page, Len: 1, Result: 77}
	}
	reqs[5].Device = 3 // unresolvable: not to be written either
	for range 10 {
		_, err := r.Submit(engine.Read, reqs)
		wantError(t, "Submit", err, syscall.EBUSY, ReasonSubmit)
	}
	for i := range reqs {
		if reqs[i].Result != 77 {
			t.Fatalf("result %d written", i)
		}
	}
	r.deregister(0, 2*page, page) // would hang if a gate were held
	b.Release()
	until(func() bool { return r.AsyncInFlight() == 0 })
	// All slots are free although nothing was waited for.
	h, err := r.Submit(engine.Read, one())
	if err != nil {
		t.Fatalf("Submit after the I/O: %v", err)
	}
	for _, h := range append(handles, h) {
		if failed, err := r.Wait(h); failed != 0 || err != nil {
			t.Fatalf("Wait = %d, %v", failed, err)
		}
	}
}

func TestSyncBatchRunsAfterAnEarlierAsyncBatch(t *testing.T) {
	r := newRig(t)
	f := newFile(t, page)
	out, outAddr := newBuffer(t, page)
	in, inAddr := newBuffer(t, page)
	copy(out, "written before")
	b := fault.NewBarrier()
	r.script.Add(fault.On(engine.Write).Late(b))
	h, err := r.Submit(engine.Write, []Request{{FD: fd(f), Device: -1, Buf: outAddr, Len: 14}})
	if err != nil {
		t.Fatal(err)
	}
	b.WaitParked(1)
	read := async(func() int {
		failed, _ := r.Run(engine.Read, []Request{{FD: fd(f), Device: -1, Buf: inAddr, Len: 14}})
		return failed
	})
	b.Release()
	if failed := <-read; failed != 0 || string(in[:14]) != "written before" {
		t.Fatalf("failed %d, read %q", failed, in[:14])
	}
	if failed, err := r.Wait(h); failed != 0 || err != nil {
		t.Fatalf("Wait = %d, %v", failed, err)
	}
}

func TestDestroyWaitsForTheIOAndWritesNothing(t *testing.T) {
	r := newRig(t)
	f := newFile(t, page)
	_, cpu := newBuffer(t, page)
	b := fault.NewBarrier()
	r.script.Add(fault.On(engine.Write).Late(b))
	reqs := []Request{{FD: fd(f), Device: -1, Buf: cpu, Len: 10, Result: 77}}
	h, err := r.Submit(engine.Write, reqs)
	if err != nil {
		t.Fatal(err)
	}
	b.WaitParked(1)
	destroyed := async(func() error {
		err := r.Destroy(h)
		if b.Parked() != 0 {
			t.Error("Destroy returned with I/O in flight")
		}
		return err
	})
	b.Release()
	if err := <-destroyed; err != nil {
		t.Fatal(err)
	}
	if reqs[0].Result != 77 {
		t.Fatalf("result %d written", reqs[0].Result)
	}
}

func TestGatesAreLeftWhenTheIOIsDoneWithoutAnyWaiter(t *testing.T) {
	r := newRig(t)
	r.open(0)
	r.register(0, page, page)
	f := newFile(t, page)
	var handles []Handle
	for range 10 {
		h, err := r.Submit(engine.Read, []Request{{FD: fd(f), Buf: page, Len: 1}})
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	until(func() bool { return r.find(0, page).gate().Users() == 0 })
	for _, h := range handles {
		if err := r.Destroy(h); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHandleMisuseIsEINVALAtOnce(t *testing.T) {
	r := newRig(t)
	misuse := func(h Handle) {
		t.Helper()
		_, err := r.Wait(h)
		wantError(t, "Wait", err, syscall.EINVAL, ReasonBadHandle)
		wantError(t, "Destroy", r.Destroy(h), syscall.EINVAL, ReasonBadHandle)
	}
	for _, h := range []Handle{0, 1, 2, 1 << 26, 1<<26 | 1, ^Handle(0), 1 << 63, 0xdeadbeefcafe} {
		misuse(h)
	}
	waited, _ := r.Submit(engine.Read, make([]Request, 1))
	destroyed, _ := r.Submit(engine.Read, make([]Request, 1))
	live, _ := r.Submit(engine.Read, make([]Request, 1))
	if _, err := r.Wait(waited); err != nil {
		t.Fatal(err)
	}
	if err := r.Destroy(destroyed); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		misuse(waited)
		misuse(destroyed)
		h, _ := r.Submit(engine.Read, nil) // the entry lives again, the old number does not
		misuse(waited)
		misuse(destroyed)
		_ = r.Destroy(h)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		if h := Handle(rng.Uint64()); h != live {
			misuse(h)
		}
		if h := live ^ 1<<rng.UintN(64); h != live {
			misuse(h)
		}
	}
	if failed, err := r.Wait(live); failed != 1 || err != nil {
		t.Fatalf("Wait = %d, %v", failed, err)
	}
}

func TestOfTwoThreadsWaitingForOneHandleOneGetsTheCount(t *testing.T) {
	r := newRig(t)
	f := newFile(t, page)
	_, cpu := newBuffer(t, page)
	b := fault.NewBarrier()
	r.script.Add(fault.On(engine.Read).Late(b))
	reqs := []Request{{FD: fd(f), Device: -1, Buf: cpu, Len: 10}, {FD: -1, Device: -1, Buf: cpu, Len: 10}}
	h, err := r.Submit(engine.Read, reqs)
	if err != nil {
		t.Fatal(err)
	}
	b.WaitParked(1)
	results := make(chan error, 4)
	for range 4 {
		go func() {
			failed, err := r.Wait(h)
			if err == nil && failed != 1 {
				t.Errorf("failed %d, want 1", failed)
			}
			results <- err
		}()
	}
	for range 3 { // the losers come back while the I/O is held
		wantError(t, "losing Wait", <-results, syscall.EINVAL, ReasonBadHandle)
	}
	b.Release()
	if err := <-results; err != nil {
		t.Fatalf("the winner: %v", err)
	}
}

func TestManyUnwaitedHandlesAreFine(t *testing.T) {
	r := newRig(t)
	f := newFile(t, page)
	_, cpu := newBuffer(t, page)
	seen := map[Handle]bool{}
	var handles []Handle
	reqs := []Request{{FD: fd(f), Device: -1, Buf: cpu, Len: 10}}
	for len(handles) < 1000 {
		h, err := r.Submit(engine.Read, reqs)
		if err != nil {
			until(func() bool { return r.AsyncInFlight() < engine.MaxAsync })
			continue
		}
		if seen[h] {
			t.Fatalf("handle %#x twice", h)
		}
		seen[h] = true
		handles = append(handles, h)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for _, h := range handles[i*250 : (i+1)*250] {
				if err := r.Destroy(h); err != nil {
					t.Errorf("Destroy: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestSubmitWithoutHelpersIsENOTSUP(t *testing.T) {
	r := newRig(t, withEngine(func(e engine.Engine) engine.Engine { return noHelpers{e} }))
	r.open(0)
	r.register(0, page, page)
	reqs := []Request{{Buf: page, Len: 1, Result: 77}}
	_, err := r.Submit(engine.Read, reqs)
	wantError(t, "Submit", err, syscall.ENOTSUP, ReasonSubmit)
	if reqs[0].Result != 77 {
		t.Fatal("result written")
	}
	r.deregister(0, page, page)
}

// noHelpers refuses every submit.
type noHelpers struct{ engine.Engine }

func (e noHelpers) Submit(b *engine.Batch) error {
	e.Abandon(b)
	return syscall.ENOTSUP
}
