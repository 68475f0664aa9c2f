package engine

// pool knows the batches that want help and the threads that could give it.
// All of it is protected by queue.mu.
type pool struct {
	helpers idleList // helper threads asleep; the last one, still warm, is woken first
	waiters idleList // threads asleep in Run (before their turn) and in Wait

	// Batches that want help, oldest first: the running async batch, or any
	// number of sync ones. One may be exhausted already.
	first, last *Batch
}

// startLocked offers the async batch b, whose turn has come. At least one
// thread is sure to look at it: the caller itself if it stays, else one woken
// here, else (nobody sleeps) each helper, since all look before they sleep.
func (p *pool) startLocked(b *Batch, stays bool, w *wakes) {
	p.offer(b)
	if stays {
		b.want--
	}
	if b.want > 0 && b.park.listed { // its own waiter: no second wake-up at the end
		p.waiters.remove(&b.park)
		w.add(&b.park)
		b.want--
		return
	}
	p.callLocked(b, 1, w)
}

// callLocked wakes up to n sleeping threads for b, as far as it wants them:
// helpers, then threads that wait for something behind b in the queue. Those
// cannot get what they wait for before b is complete, so each of them comes
// to look at b while b has anything left.
func (p *pool) callLocked(b *Batch, n int, w *wakes) {
	for ; n > 0 && b.want > 0; n-- {
		l := &p.helpers
		t := l.last
		if t == nil {
			l = &p.waiters
			t = l.first
		}
		if t == nil {
			return
		}
		l.remove(t)
		w.add(t)
		b.want--
	}
}

// pickLocked finds work: the oldest batch with unclaimed units, or nil.
func (p *pool) pickLocked() *Batch {
	for b := p.first; b != nil; b = p.first {
		if !b.exhausted() {
			return b
		}
		p.withdraw(b)
	}
	return nil
}

// joinLocked makes the caller a participant of b: until it leaves, b cannot be
// complete. It wakes two more, so that many helpers come in few steps while
// the thread that offered b pays for few system calls.
func (p *pool) joinLocked(b *Batch, w *wakes) {
	b.joined++
	p.callLocked(b, 2, w)
}

// leaveLocked ends the caller's part in b. True: b is an async batch, the
// caller was the last one inside and must complete it. Nobody can join after
// the cursor has reached the end, so this comes once.
func (p *pool) leaveLocked(b *Batch, w *wakes) (last bool) {
	b.joined--
	if b.joined > 0 || !b.exhausted() {
		return false
	}
	p.withdraw(b)
	if b.drain {
		b.drain = false
		w.add(&b.park)
	}
	return b.order == Async
}

func (p *pool) offer(b *Batch) {
	b.hPrev, b.hNext, b.offered = p.last, nil, true
	if p.last == nil {
		p.first = b
	} else {
		p.last.hNext = b
	}
	p.last = b
}

// withdraw takes b off the list, if it is still there.
func (p *pool) withdraw(b *Batch) {
	if !b.offered {
		return
	}
	if b.hPrev == nil {
		p.first = b.hNext
	} else {
		b.hPrev.hNext = b.hNext
	}
	if b.hNext == nil {
		p.last = b.hPrev
	} else {
		b.hNext.hPrev = b.hPrev
	}
	b.hPrev, b.hNext, b.offered = nil, nil, false
}
