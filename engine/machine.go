package engine

import (
	"sync"
	"syscall"
	"time"
)

// machine is every engine but for its transport: it joins the queue, the
// claims, the helpers and the lanes.
type machine struct {
	// Set by the constructor, then read-only.
	io      IO
	solo    *syncLane // for a batch of one small op, whatever the transport
	lanes   transport
	staging stageLane // of batches with a Stager
	size    int       // helper threads, once they are started
	wide    int       // the same for reads with a Stager; at least size
	told    func(string)
	count   func(int)
	origin  time.Time // of the monotonic clock readings
	reason  string    // why Choose chose this engine

	queue queue

	live    sync.WaitGroup // helper threads
	started int            // of them; protected by queue.mu
}

func newMachine(cfg Config) *machine {
	m := &machine{io: cfg.IO, size: cfg.Helpers, told: cfg.Notice, count: cfg.OnAsync, origin: time.Now()}
	if m.io == nil {
		m.io = kernelIO{}
	}
	m.size, m.wide = helpersFor(cfg.Helpers, usableCores)
	m.solo = &syncLane{io: m.io, notice: m.notice}
	m.staging = stageLane{io: m.io, notice: m.notice}
	return m
}

// Helper threads: performance.md, "The engine that reached them", 3. A staged
// read is a copy by the CPU, from the page cache into a slot, at 5 to 7 GB/s for
// each thread, and a GPU takes ten times that.
const (
	defaultHelpers = 4
	stagingHelpers = 10
	maxHelpers     = 64
)

// helpersFor is how many helper threads there are, and how many for staged
// reads, if wanted were asked for; 0: nobody asked.
func helpersFor(wanted int, cores func() int) (size, wide int) {
	if wanted > 0 {
		wanted = min(wanted, maxHelpers)
		return wanted, wanted
	}
	most := max(cores()-1, 1)
	return min(most, defaultHelpers), min(most, stagingHelpers)
}

// helpers is how many may take part in b.
func (m *machine) helpers(b *Batch) int {
	if b.Stager != nil && b.Kind == Read {
		return m.wide
	}
	return m.size
}

// Name implements Engine.
func (m *machine) Name() string { return m.lanes.name() }

// AsyncInFlight implements Engine.
func (m *machine) AsyncInFlight() int { return int(m.queue.inFlight.Load()) }

// Begin implements Engine.
func (m *machine) Begin(b *Batch, o Order) {
	b.reset(o)
	switch o {
	case Async:
		m.queue.beginAsync(b)
		return
	case Unordered:
		b.state.Store(started)
		return
	}
	var w wakes
	m.queue.beginSync(b, &w)
	w.fire()
}

// Abandon implements Engine.
func (m *machine) Abandon(b *Batch) {
	q := &m.queue
	var w wakes
	if b.order == Unordered {
		b.state.Store(over)
		return
	}
	if b.state.Load() == started || !q.retire(b, &w) {
		b.state.Store(over)
		q.leaveSync(&w)
	}
	w.fire()
}

// Submit implements Engine.
func (m *machine) Submit(b *Batch) error {
	l := b.prepare()
	b.files.forget() // by the time of its turn the number may be another file
	b.want = max(1, m.worthwhile(b, l))
	m.share(b, l, b.want)
	q := &m.queue
	var w wakes
	q.mu.Lock()
	err := q.admitLocked(b)
	if err == nil {
		m.countLocked(1)
		m.startHelpersLocked(m.helpers(b))
		b.ready = true
	} else {
		q.unlink(b)
		b.state.Store(over)
	}
	q.advanceLocked(false, &w)
	q.mu.Unlock()
	w.fire()
	return err
}

// admitLocked finds the reason, if any, to refuse a submitted batch.
func (q *queue) admitLocked(b *Batch) error {
	switch {
	case q.closed:
		return syscall.ENOTSUP
	case len(b.Ops) == 0:
		return syscall.EINVAL
	case q.inFlight.Load() >= MaxAsync:
		return syscall.EBUSY
	}
	return nil
}

// Wait implements Engine.
func (m *machine) Wait(b *Batch) {
	m.await(b, done)
	b.state.Store(over)
}

// Close implements Engine.
func (m *machine) Close() {
	q := &m.queue
	var w wakes
	q.mu.Lock()
	if q.inFlight.Load() > 0 {
		q.closing = true
		q.closer.armLocked()
		q.mu.Unlock()
		q.closer.sleep()
		q.mu.Lock()
	}
	q.closed = true
	for h := q.pool.helpers.last; h != nil; h = q.pool.helpers.last {
		q.pool.helpers.remove(h)
		w.add(h)
	}
	q.mu.Unlock()
	w.fire()
	m.live.Wait()
	m.lanes.close()
}
