package engine

import (
	"fmt"
	"sync"
	"sync/atomic"

	"libphoenix/internal/uring"
)

// uringTransport makes lanes of rings. A thread in Run or Wait borrows one of
// a bounded number of caller rings for one batch; each helper thread has its
// own. Where a ring cannot be made, or breaks, the thread makes plain system
// calls instead.
//
// All rings together hold at most maxRingFDs file descriptors.
type uringTransport struct {
	// Set by NewUring, then read-only.
	kernel uring.Kernel // nil: Linux
	io     IO
	plain  *syncLane
	notice func(string)
	depth  uint32
	most   int // how many of callers are in use

	callers [maxCallerRings]callerRing

	troubles atomic.Int64 // rings that could not be made or broke, by weight
	rest     atomic.Int64 // how often to go without a ring before another try

	opening   sync.Mutex // held while a helper makes its ring
	helperFDs int        // fds of helper rings; protected by opening
}

// Limits of performance.md, "The engine that reached them", 2.
const (
	maxRingFDs     = 64
	maxCallerRings = 32

	defaultDepth = 256
	minDepth     = 8
	maxDepth     = 4096
)

// callerRing is a place for one caller ring. lane belongs to the thread that
// moved state to busy, until it moves it on.
type callerRing struct {
	state atomic.Uint32
	lane  *uringLane // nil while vacant
	_     [48]byte   // a cache line for each: threads take neighbours
}

// States of a callerRing.
const (
	vacant = iota // no lane made yet
	idle          // its ring is empty
	busy
)

func newUringTransport(cfg Config, m *machine) *uringTransport {
	t := &uringTransport{kernel: noting(cfg.Rings, cfg.RingFDs), io: m.io, plain: m.solo, depth: defaultDepth}
	t.notice = func(string) {} // until the trial is over: its failure is an error
	if cfg.Depth > 0 {
		t.depth = uint32(min(max(cfg.Depth, minDepth), maxDepth))
	}
	t.most = min(2*usableCores(), maxCallerRings)
	return t
}

func (t *uringTransport) name() string     { return "io_uring" }
func (t *uringTransport) quantum() int64   { return claimNs }
func (t *uringTransport) deep(*Batch) bool { return true }
func (t *uringTransport) foresee(b *Batch) { b.inARow(b.Ops[0].FD) }

// caller prefers the first places, so that few rings are made and stay warm.
func (t *uringTransport) caller() lane {
	for i := range t.callers[:t.most] {
		s := &t.callers[i]
		if s.state.Load() == idle && s.state.CompareAndSwap(idle, busy) {
			return t.ready(s)
		}
	}
	for i := range t.callers[:t.most] {
		s := &t.callers[i]
		if s.state.Load() == vacant && s.state.CompareAndSwap(vacant, busy) {
			s.lane = t.newLane(false)
			s.lane.place = s
			return t.ready(s)
		}
	}
	return nil
}

// ready is the lane at a place that the caller has taken, or the plain one if
// that lane has no ring and may not have one now.
func (t *uringTransport) ready(s *callerRing) lane {
	if s.lane.attached() {
		return s.lane
	}
	s.state.Store(idle)
	return t.plain
}

func (t *uringTransport) release(l lane) {
	if l, ok := l.(*uringLane); ok {
		l.place.state.Store(idle)
	}
}

func (t *uringTransport) helper() lane {
	l := t.newLane(true)
	l.attached()
	return l
}

func (t *uringTransport) retire(l lane) { l.(*uringLane).drop() }

func (t *uringTransport) close() {
	for i := range t.callers {
		if l := t.callers[i].lane; l != nil {
			l.drop()
		}
	}
}

// dearTrouble is the weight of a trouble that has cost a batch much time.
const dearTrouble = 4

// trouble counts a ring that could not be made or broke. The first is told,
// each makes the next try come later: making a ring is no small thing.
func (t *uringTransport) trouble(err error, weight int64) {
	n := t.troubles.Add(weight)
	t.rest.Store(1 << min(n, 16))
	if n == weight {
		t.notice(fmt.Sprintf("a thread goes on without io_uring: %v", err))
	}
}

// mayOpen reports whether a ring may be tried again.
func (t *uringTransport) mayOpen() bool {
	return t.rest.Load() <= 0 || t.rest.Add(-1) <= 0
}
