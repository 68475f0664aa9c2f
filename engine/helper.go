package engine

import "runtime"

// startHelpersLocked sees to it that there are n helper threads, which stay.
func (m *machine) startHelpersLocked(n int) {
	for ; m.started < n; m.started++ {
		m.live.Add(1)
		go m.helper()
	}
}

// helper is the life of a helper thread; Close ends it. It keeps its OS thread
// locked: a ring may belong to it, and the thread dies with the goroutine.
func (m *machine) helper() {
	defer m.live.Done()
	runtime.LockOSThread()
	var p parker
	own := m.lanes.helper()
	defer m.lanes.retire(own)
	q := &m.queue
	for {
		var w wakes
		q.mu.Lock()
		b := q.pool.pickLocked()
		if b == nil {
			if q.closed {
				q.mu.Unlock()
				return
			}
			p.armLocked()
			q.pool.helpers.push(&p)
			q.mu.Unlock()
			p.sleep()
			continue
		}
		q.pool.joinLocked(b, &w)
		q.mu.Unlock()
		w.fire()
		m.work(own, b)
		m.leave(b, true)
	}
}

// await returns when b has reached the state: its turn, or its completion.
// Until then the calling thread works on whatever wants help, which is always
// something that b has to wait for.
func (m *machine) await(b *Batch, state uint32) {
	q := &m.queue
	for b.state.Load() != state {
		var w wakes
		q.mu.Lock()
		if b.state.Load() == state {
			q.mu.Unlock()
			return
		}
		r := q.pool.pickLocked()
		if r == nil {
			q.pool.restLocked(b)
			q.mu.Unlock()
			b.park.sleep()
			continue
		}
		q.pool.joinLocked(r, &w)
		q.mu.Unlock()
		w.fire()
		if own := m.lanes.caller(); own != nil {
			m.work(own, r)
			m.lanes.release(own)
			m.leave(r, r != b)
		} else {
			m.passOn(b, r, state)
		}
	}
}

// restLocked makes the thread that waits in Run or Wait for b ready to sleep.
func (p *pool) restLocked(b *Batch) {
	b.park.armLocked()
	p.waiters.push(&b.park)
}

// passOn leaves r undone, because the transport has no lane for this thread,
// to a helper, and sleeps until something changes.
func (m *machine) passOn(b, r *Batch, state uint32) {
	q := &m.queue
	var w wakes
	q.mu.Lock()
	last := q.pool.leaveLocked(r, &w)
	if h := q.pool.helpers.last; h != nil && !last {
		q.pool.helpers.remove(h)
		w.add(h)
	}
	sleep := !last && b.state.Load() != state
	if sleep {
		q.pool.restLocked(b)
	}
	q.mu.Unlock()
	w.fire()
	if last {
		m.complete(r, r != b)
	}
	if sleep {
		b.park.sleep()
	}
}

// leave ends the caller's part in b, whose units it can claim no more.
func (m *machine) leave(b *Batch, stays bool) {
	q := &m.queue
	var w wakes
	q.mu.Lock()
	last := q.pool.leaveLocked(b, &w)
	q.mu.Unlock()
	w.fire()
	if last {
		m.complete(b, stays)
	}
}

// complete ends the async batch b, all of whose units are settled: Done, then
// its slot, then its waiter. b may be in use again as soon as its state says
// done. The queue stands still meanwhile, since b still counts as running.
func (m *machine) complete(b *Batch, stays bool) {
	if b.Done != nil {
		guard(m.notice, "in the Done callback", func() { b.Done(b) })
	}
	q := &m.queue
	var w wakes
	q.mu.Lock()
	m.countLocked(-1)
	q.running = nil
	if b.park.listed {
		q.pool.waiters.remove(&b.park)
		w.add(&b.park)
	}
	b.state.Store(done)
	q.advanceLocked(stays, &w)
	if q.closing && q.inFlight.Load() == 0 {
		q.closing = false
		w.add(&q.closer)
	}
	q.mu.Unlock()
	w.fire()
}

// countLocked changes the number of async batches in flight.
func (m *machine) countLocked(by int32) {
	n := m.queue.inFlight.Add(by)
	if m.count != nil {
		guard(m.notice, "in the OnAsync callback", func() { m.count(int(n)) })
	}
}

// notice tells the engine's owner what went wrong.
func (m *machine) notice(reason string) {
	if m.told != nil {
		m.told(reason)
	}
}
