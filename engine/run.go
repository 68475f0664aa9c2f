package engine

import "time"

// helpNs is the work, in one thread's time, for which a helper is worth its
// wake-up.
const helpNs = 60_000

// Run implements Engine.
func (m *machine) Run(b *Batch) {
	if b.state.Load() != started {
		m.await(b, started)
	}
	switch {
	case len(b.Ops) == 0:
	case b.Stager != nil:
		m.runStaged(b)
	case len(b.Ops) == 1 && b.Ops[0].Len <= sliceBytes:
		b.Ops[0].slices = 1
		m.solo.perform(b, claim{0, 1 << 32})
	default:
		m.many(b)
	}
	b.state.Store(over)
	if b.order == Unordered {
		return
	}
	var w wakes
	m.queue.leaveSync(&w)
	w.fire()
}

// many carries out a sync batch of more than one unit.
func (m *machine) many(b *Batch) {
	l := b.prepare()
	if l.units == 1 && b.Ops[0].slices < 0 { // all in one run: one system call
		m.solo.perform(b, claim{0, b.end()})
		return
	}
	want := m.worthwhile(b, l)
	m.share(b, l, want)
	if want == 0 && !m.lanes.deep(b) {
		want = m.measure(b, l)
	}
	own := m.lanes.caller()
	if own != nil && want == 0 {
		b.quantum = unbounded
		own.run(b)
		m.lanes.release(own)
		return
	}
	m.lanes.foresee(b)
	m.offer(b, max(want, 1))
	if own != nil {
		own.run(b)
		m.lanes.release(own)
	}
	m.drain(b)
}

// worthwhile is how many helpers the work l of b deserves.
func (m *machine) worthwhile(b *Batch, l load) int32 {
	return int32(max(0, min(int64(m.helpers(b)), l.ns/helpNs, l.units-1)))
}

// share sets the claim size that leaves each of the participants (want helpers
// and the caller) several claims, and makes it smaller towards the end, so that
// all end at about the same time.
func (m *machine) share(b *Batch, l load, want int32) {
	participants := int64(want) + 1
	b.quantum = max(1, min(claimNs, m.lanes.quantum(), l.ns/(4*participants)))
	b.easing = l.ns / int64(max(1, len(b.Ops))) / (2 * participants)
}

// measure does the first unit of b alone, by the clock, and says how many
// helpers the rest is worth if it goes on like this. The estimate knows only
// memory; a disk is a hundred times slower. If it wants help it leaves a
// claim size of one unit: against slow transfers a claim costs nothing.
func (m *machine) measure(b *Batch, l load) int32 {
	share := b.quantum
	b.quantum = 1
	first, _ := b.claim()
	_, _, n := b.unit(0)
	guess := costNs(n)
	before := time.Since(m.origin)
	m.solo.perform(b, first)
	took := time.Since(m.origin) - before
	rest := load{units: l.units - 1, ns: (l.ns - guess) / guess * int64(took)}
	want := m.worthwhile(b, rest)
	if want == 0 {
		b.quantum = share
	}
	return want
}

// offer puts a sync batch up for help and wakes the first helpers. The caller
// goes on to work on it, or (without a lane) only to wait for them: they are
// sure to look, since no helper sleeps without having looked.
func (m *machine) offer(b *Batch, want int32) {
	q := &m.queue
	var w wakes
	q.mu.Lock()
	m.startHelpersLocked(m.helpers(b))
	b.want = want
	q.pool.offer(b)
	q.pool.callLocked(b, 2, &w)
	q.mu.Unlock()
	w.fire()
}

// drain returns when every unit of a sync batch is settled and no other
// participant is inside.
func (m *machine) drain(b *Batch) {
	q := &m.queue
	q.mu.Lock()
	if b.joined == 0 && b.exhausted() {
		q.pool.withdraw(b)
		q.mu.Unlock()
		return
	}
	b.drain = true
	b.park.armLocked()
	q.mu.Unlock()
	b.park.sleep() // the last one to leave withdraws b
}
