package engine

import (
	"fmt"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// syncTransport makes lanes of plain system calls, and of Linux AIO where a
// batch is of O_DIRECT files. Plain lanes keep no state, so all threads use one.
// AIO contexts are few, since the system has a limit for all processes
// (fs.aio-max-nr): each thread borrows one for a batch, and goes without if
// none is free. Once anything about AIO is refused it is used no more.
type syncTransport struct {
	// Set by newSyncTransport, then read-only.
	plain  *syncLane
	aio    AIO
	flags  int    // of files that AIO is for: O_DIRECT (tests: others)
	grain  uint64 // what it is aligned to, in bytes; the kernel may want more
	places []aioPlace

	denied atomic.Bool
}

// aioPlace is a place for one lane, whose owner is the thread that moved state
// to busy, until it moves it on. The states are those of a callerRing.
type aioPlace struct {
	state atomic.Uint32
	lane  *aioLane // nil while vacant
}

// maxContexts is how many AIO contexts there are at most.
const maxContexts = 16

func newSyncTransport(cfg Config, m *machine) *syncTransport {
	t := &syncTransport{plain: m.solo, aio: cfg.AIO, flags: unix.O_DIRECT, grain: 512, places: make([]aioPlace, maxContexts)}
	if t.aio == nil {
		t.aio = linuxAIO{}
	}
	return t
}

func (t *syncTransport) name() string { return "sync" }
func (t *syncTransport) caller() lane { return t }
func (t *syncTransport) release(lane) {}
func (t *syncTransport) helper() lane { return t }
func (t *syncTransport) retire(lane)  {}

// quantum is short: a lane does its claim one transfer after the other, on a
// disk much slower than the estimate, and what one holds the others cannot take.
func (t *syncTransport) quantum() int64 { return 16_000 }

// deep goes by the first op, as run does.
func (t *syncTransport) deep(b *Batch) bool {
	return !t.denied.Load() && b.direct(b.Ops[0].FD, t.flags)
}

func (t *syncTransport) foresee(b *Batch) { t.deep(b) }

// run implements lane.
func (t *syncTransport) run(b *Batch) {
	if !b.exhausted() && t.deep(b) {
		if p := t.take(); p != nil {
			p.lane.run(b)
			p.state.Store(idle)
			return
		}
	}
	t.plain.run(b)
}

// take gives a place with a context, or nil.
func (t *syncTransport) take() *aioPlace {
	for i := range t.places {
		p := &t.places[i]
		if p.state.Load() == idle && p.state.CompareAndSwap(idle, busy) {
			return p
		}
	}
	for i := range t.places {
		p := &t.places[i]
		if p.state.Load() != vacant || !p.state.CompareAndSwap(vacant, busy) {
			continue
		}
		l := &aioLane{t: t}
		if errno := l.open(); errno != 0 {
			t.deny("io_setup", errno)
			p.state.Store(vacant)
			return nil
		}
		p.lane = l
		return p
	}
	return nil
}

// deny ends the use of AIO. The first reason is told.
func (t *syncTransport) deny(call string, errno syscall.Errno) {
	if t.denied.CompareAndSwap(false, true) {
		t.plain.notice(fmt.Sprintf("direct transfers go on without Linux AIO: %s: %v", call, error(errno)))
	}
}

// close ends the contexts, in which nothing flies.
func (t *syncTransport) close() {
	for i := range t.places {
		if l := t.places[i].lane; l != nil {
			t.aio.Destroy(l.context)
		}
	}
}
