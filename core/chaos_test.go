package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"libphoenix/engine"
)

// Each goroutine owns one stripe of the device address space, where it knows
// what must happen, and shares another, where anything may. The fake nodes fail
// the test on a second UNMAP or a munmap of what is not mapped, the rig on
// anything left behind.
func TestSixteenThreadsOfRandomCalls(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	r := newRig(t)
	f := newFile(t, 16*page)
	fd := fd(f)
	r.open(0) // keeps device 0 open; device 1 opens and closes all the time
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() { (&walker{r: r, g: g, fd: fd, rng: rand.New(rand.NewPCG(42, uint64(g)))}).walk(rounds) })
	}
	wg.Wait()
	r.checkIdle()
}

type walker struct {
	r   *rig
	g   int
	fd  int32
	rng *rand.Rand
}

// own is the start of this goroutine's stripe on device 0, and what it shares.
func (w *walker) own() DevAddr    { return DevAddr(1+w.g) << 32 }
func (w *walker) shared() DevAddr { return DevAddr(1+w.rng.IntN(4)) * 4 * page }

func (w *walker) walk(rounds int) {
	for i := range rounds {
		var err error
		switch w.rng.IntN(6) {
		case 0:
			err = w.ownRegistration()
		case 1:
			err = w.ownAsync()
		case 2, 3:
			err = w.sharedRange(0)
		case 4:
			err = w.flakyDevice()
		case 5:
			_, err = w.r.Wait(Handle(w.rng.Uint64() & (1<<30 - 1)))
			if !errors.Is(err, syscall.EINVAL) {
				err = fmt.Errorf("wild handle: %w", err)
				break
			}
			err = nil
		}
		if err != nil {
			w.r.t.Errorf("goroutine %d, round %d: %v", w.g, i, err)
			return
		}
	}
}

// batch reads 16 bytes per request into [addr, addr+page) of a device.
func (w *walker) batch(dev int32, addr DevAddr) []Request {
	reqs := make([]Request, 1+w.rng.IntN(20))
	for i := range reqs {
		reqs[i] = Request{FD: w.fd, Device: dev, Buf: addr, BufOffset: int64(i) * 16, Len: 16, Offset: int64(i) * 16}
	}
	return reqs
}

func (w *walker) ownRegistration() error {
	host, err := w.r.Register(0, w.own(), page)
	if err != nil {
		return err
	}
	reqs := w.batch(0, w.own())
	if failed, err := w.r.Run(engine.Read, reqs); failed != 0 || err != nil {
		return fmt.Errorf("run: %d failed, %w", failed, err)
	}
	for i, b := range bytesAt(host, 16*len(reqs)) {
		if b != pattern(i) {
			return fmt.Errorf("byte %d is %#x", i, b)
		}
	}
	if n, err := w.r.Transfer(engine.Read, w.fd, 0, w.own(), 0, 100, 0); n != 100 || err != nil {
		return fmt.Errorf("transfer: %d, %w", n, err)
	}
	return w.r.Deregister(0, w.own(), page)
}

func (w *walker) ownAsync() error {
	if _, err := w.r.Register(0, w.own(), page); err != nil {
		return err
	}
	reqs := w.batch(0, w.own())
	h, err := w.r.Submit(engine.Read, reqs)
	if dereg := w.r.Deregister(0, w.own(), page); dereg != nil {
		return dereg
	}
	if errors.Is(err, syscall.EBUSY) {
		return nil
	}
	if err != nil {
		return err
	}
	if w.rng.IntN(3) == 0 {
		return w.r.Destroy(h)
	}
	if failed, err := w.r.Wait(h); failed != 0 || err != nil {
		return fmt.Errorf("wait: %d failed, %w", failed, err)
	}
	return nil
}

// sharedRange calls at random on ranges that others use; only impossible
// answers are errors.
func (w *walker) sharedRange(dev int32) error {
	addr := w.shared()
	n := uint64(1+w.rng.IntN(3)) * page
	_, err := w.r.Register(int(dev), addr, n)
	if err != nil && !errors.Is(err, errOverlap) && !w.away(dev, err) {
		return fmt.Errorf("register: %w", err)
	}
	registered := err == nil
	reqs := w.batch(dev, addr)
	failed, err := w.r.Run(engine.Read, reqs)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	for _, q := range reqs {
		if q.Result != 16 && q.Result != efault {
			return fmt.Errorf("result %d", q.Result)
		}
	}
	if failed != 0 && registered && dev == 0 {
		return fmt.Errorf("%d failed inside a reference that this thread holds", failed)
	}
	if registered {
		if err := w.r.Deregister(int(dev), addr, n); err != nil && !w.away(dev, err) {
			return fmt.Errorf("deregister: %w", err)
		}
	}
	return nil
}

// away says whether err means that a device which others close is closed, or
// was in between.
func (w *walker) away(dev int32, err error) bool {
	return dev != 0 && (errors.Is(err, errNotOpen) || errors.Is(err, errClosing) || errors.Is(err, errUnknownRange) || errors.Is(err, errWrongLength))
}

func (w *walker) flakyDevice() error {
	if err := w.r.Open(1); err != nil && !errors.Is(err, errClosingOpen) {
		return fmt.Errorf("open: %w", err)
	} else if err != nil {
		return nil
	}
	if err := w.sharedRange(1); err != nil {
		return err
	}
	if err := w.r.Close(1); err != nil && !errors.Is(err, errNotOpen) {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
