package statemachine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"libphoenix/core"
	"libphoenix/engine"
)

const (
	threads = 16
	calls   = 12 // of each thread, in one history
)

// checkerLimit is how long the search for an order may take. What it has not
// decided by then is counted, and is no failure.
const checkerLimit = 20 * time.Second

// TestSixteenThreads: the answers that 16 threads get at once are those of some
// order of their calls, in which each call lies between its begin and its end.
func TestSixteenThreads(t *testing.T) {
	seed, undecided := uint64(time.Now().UnixNano()), 0
	rounds(t, 60, func() {
		seed++
		if !linearizable(t, seed) {
			undecided++
		}
	})
	if undecided > 0 {
		t.Logf("%d histories had too many orders to try in %v", undecided, checkerLimit)
	}
}

// linearizable makes one history and checks it; false: undecided.
func linearizable(t *testing.T, seed uint64) bool {
	k := newKernel()
	k.yield = true
	c := &crowd{k: k, l: newLibrary(k)}
	c.run(seed)
	c.l.Shutdown()
	for _, wrong := range append(c.wrong, k.complaints(true)...) {
		t.Errorf("seed %d: %s", seed, wrong)
	}
	verdict := porcupine.CheckOperationsTimeout(spec(), c.history, checkerLimit)
	if verdict == porcupine.Illegal {
		t.Errorf("seed %d: no order of these calls explains their answers:", seed)
		for _, o := range c.history {
			t.Logf("%4d..%4d thread %2d %v", o.Call, o.Return, o.ClientId, o.Input)
		}
	}
	return verdict != porcupine.Unknown
}

// crowd is threads that use a library at once, and what they saw.
type crowd struct {
	k     *kernel
	l     *core.Library
	clock atomic.Int64 // begin and end of calls
	ids   atomic.Int64 // of calls

	mu      sync.Mutex
	history []porcupine.Operation
	wrong   []string
}

// tick is the time, and a chance for others to get between it and the call.
func (c *crowd) tick() int64 {
	defer runtime.Gosched()
	return c.clock.Add(1)
}

// run is what the threads do, and at the end, alone, what shows the state that
// is left: a transfer to each page and all closes.
func (c *crowd) run(seed uint64) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for g := range threads {
		all.Go(func() {
			runtime.LockOSThread()
			w := &walker{crowd: c, g: g, rng: rand.New(rand.NewPCG(seed, uint64(g)))}
			<-begin
			for range calls {
				w.step()
			}
			w.collect()
		})
	}
	close(begin)
	all.Wait()
	w := &walker{crowd: c, g: threads}
	for dev := range crowdDevices {
		for p := 1; p <= pages; p++ {
			w.transfer(dev, core.DevAddr(p)*page, 1)
		}
		for w.close(dev).ok() {
		}
	}
}

// walker is one thread.
type walker struct {
	*crowd
	g   int
	rng *rand.Rand

	// The async batch it has not waited for, and when it was submitted.
	h         core.Handle
	reqs      []core.Request
	from, til int64
}

const (
	crowdDevices = 5 // so that some 3 threads meet at one: the orders to try grow exponentially
	pages        = 4 // 1 and 2 are ordinary
)

// pageOf is a page by its number in the crowd: 3 and 4 fail once.
func pageOf(i int) core.DevAddr {
	return core.DevAddr([]int{1, 2, pageLateUnmap, pageLateMunmap}[i]) * page
}

func (w *walker) device() int { return w.rng.IntN(crowdDevices) }

func (w *walker) area() (core.DevAddr, uint64) {
	i := w.rng.IntN(pages)
	n := uint64(page)
	if i == 0 && w.rng.IntN(4) == 0 {
		n = 2 * page // meets page 2
	}
	return pageOf(i), n
}

func (w *walker) step() {
	switch w.rng.IntN(12) {
	case 0, 1:
		w.open(w.device())
	case 2:
		w.close(w.device())
	case 3, 4, 5:
		addr, n := w.area()
		w.register(w.device(), addr, n)
	case 6, 7:
		addr, n := w.area()
		w.deregister(w.device(), addr, n)
	case 8, 9:
		addr, n := w.area()
		w.transfer(w.device(), addr+core.DevAddr(n)-100, uint64(100+w.rng.IntN(2)))
	case 10:
		w.batch()
	case 11:
		if w.reqs == nil {
			w.submit()
		} else {
			w.collect()
		}
	}
}

// add notes steps of one call, from begin to end.
func (c *crowd) add(g int, begin, end int64, steps ...step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range steps {
		c.history = append(c.history, porcupine.Operation{ClientId: g, Input: s, Call: begin, Return: end})
	}
}

func (c *crowd) blame(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

func (w *walker) open(dev int) {
	begin := w.tick()
	a := answerOf(w.l.Open(dev))
	w.add(w.g, begin, w.tick(), step{do: doOpen, dev: dev, answer: a})
}

// close notes two steps: the device refuses calls, and it is closed.
func (w *walker) close(dev int) answer {
	begin, id := w.tick(), w.ids.Add(1)
	a := answerOf(w.l.Close(dev))
	end := w.tick()
	if a == notOpen() {
		w.add(w.g, begin, end, step{do: refuse, dev: dev, answer: a, call: "close"})
	} else {
		w.add(w.g, begin, end, step{do: beginClose, dev: dev, id: id}, step{do: endClose, dev: dev, id: id, answer: a})
	}
	return a
}

// register notes two steps: the range is taken, and it is usable.
func (w *walker) register(dev int, addr core.DevAddr, n uint64) {
	begin, id := w.tick(), w.ids.Add(1)
	host, err := w.l.Register(dev, addr, n)
	a, end := answerOf(err), w.tick()
	s := step{dev: dev, addr: addr, n: n, id: id, host: host, answer: a, call: "register"}
	if !a.ok() {
		s.do = refuse
		w.add(w.g, begin, end, s)
		return
	}
	w.add(w.g, begin, end, s.as(beginRegister), s.as(endRegister))
}

// deregister notes two steps: the range refuses I/O, and it is free, or what
// became of it.
func (w *walker) deregister(dev int, addr core.DevAddr, n uint64) {
	begin, id := w.tick(), w.ids.Add(1)
	a := answerOf(w.l.Deregister(dev, addr, n))
	end := w.tick()
	s := step{dev: dev, addr: addr, n: n, id: id, answer: a, call: "deregister"}
	if a.ok() || a.why == core.ReasonUnmap || a.why == core.ReasonMunmap {
		w.add(w.g, begin, end, s.as(beginDeregister), s.as(endDeregister))
		return
	}
	w.add(w.g, begin, end, s.as(refuse))
}

func (w *walker) transfer(dev int, buf core.DevAddr, n uint64) {
	begin := w.tick()
	got, err := w.l.Transfer(engine.Read, fdWhole, int32(dev), buf, 0, int64(n), offsetOf(dev, buf))
	a, end := answerOf(err), w.tick()
	if a.ok() && got != int64(n) {
		w.blame("a transfer of %d bytes moved %d", n, got)
	}
	w.add(w.g, begin, end, step{do: doTransfer, dev: dev, addr: buf, n: n, answer: a})
}

func (w *walker) requests() (reqs []core.Request) {
	for range 1 + w.rng.IntN(2) {
		dev := w.device()
		addr, n := w.area()
		q := core.Request{FD: fdWhole, Device: int32(dev), Buf: addr, Len: n, Offset: offsetOf(dev, addr), Result: untouched}
		if w.rng.IntN(8) == 0 {
			q.Len++
		}
		reqs = append(reqs, q)
	}
	return reqs
}

func (w *walker) batch() {
	reqs := w.requests()
	begin := w.tick()
	failed, err := w.l.Run(engine.Write, reqs)
	w.judge("Run", begin, w.tick(), reqs, failed, err)
}

func (w *walker) submit() {
	w.reqs = w.requests()
	w.from = w.tick()
	h, err := w.l.Submit(engine.Read, w.reqs)
	w.h, w.til = h, w.tick()
	if err != nil {
		w.blame("Submit of at most %d batches: %v", threads, err)
		w.reqs = nil
	}
}

// collect waits for the batch of submit, if there is one.
func (w *walker) collect() {
	if w.reqs != nil {
		failed, err := w.l.Wait(w.h)
		w.judge("Wait", w.from, w.til, w.reqs, failed, err)
		w.reqs = nil
	}
}

// judge notes each request as a transfer of its own: requests are looked at one
// by one.
func (w *walker) judge(what string, begin, end int64, reqs []core.Request, failed int, err error) {
	bad := 0
	for _, q := range reqs {
		s := step{do: doRequest, dev: int(q.Device), addr: q.Buf, n: q.Len}
		if q.Result != int64(q.Len) {
			bad++
			s.answer = unregistered()
		}
		if q.Result != int64(q.Len) && q.Result != -14 {
			w.blame("%s: result %d", what, q.Result)
		}
		w.add(w.g, begin, end, s)
	}
	if failed != bad || err != nil {
		w.blame("%s: answered %d, %v, and %d requests failed", what, failed, err, bad)
	}
}
