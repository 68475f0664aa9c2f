package engine

import (
	"sync"
	"sync/atomic"
)

// queue gives batches their order: a fair lock whose readers are sync batches
// and whose writers are async ones (doc.go).
type queue struct {
	// word counts the sync batches that may run (begun on the fast path, or
	// started from the list), in its lower bits. asyncAround says that new
	// tickets must take the list. For a moment the count also holds a thread
	// inside Begin that has not seen the bit yet.
	word atomic.Uint64
	_    [56]byte // every sync batch writes word: keep the rest off its cache line

	mu sync.Mutex

	// Protected by mu.
	pool        pool
	first, last *Batch // tickets that have not started, oldest first
	running     *Batch // the async batch that has started and is not complete
	closing     bool   // Close sleeps on closer until inFlight is 0
	closer      parker
	closed      bool // helpers end when they find nothing to do

	// inFlight counts the submitted batches whose I/O or Done callback is not
	// finished. Written under mu.
	inFlight atomic.Int32
}

// asyncAround is set in word, under mu, while the list is not empty or an
// async batch runs.
const asyncAround = 1 << 63

// beginSync takes a sync ticket.
func (q *queue) beginSync(b *Batch, w *wakes) {
	if q.word.Add(1)&asyncAround == 0 {
		b.state.Store(started)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.word.Load()&asyncAround == 0 { // gone meanwhile: the count stands
		b.state.Store(started)
		return
	}
	b.state.Store(queued)
	q.push(b)
	if q.word.Add(^uint64(0)) == asyncAround {
		q.advanceLocked(false, w) // our count may have held up an async batch
	}
}

// beginAsync takes an async ticket. Sync batches that began before this have
// their count in word or stand earlier in the list.
func (q *queue) beginAsync(b *Batch) {
	q.mu.Lock()
	q.word.Or(asyncAround)
	b.state.Store(queued)
	q.push(b)
	q.mu.Unlock()
}

// leaveSync ends a sync batch that was allowed to run.
func (q *queue) leaveSync(w *wakes) {
	if q.word.Add(^uint64(0)) == asyncAround {
		q.mu.Lock()
		q.advanceLocked(false, w)
		q.mu.Unlock()
	}
}

// retire takes back the ticket of a batch that has not started. False: it is a
// sync batch whose turn came meanwhile.
func (q *queue) retire(b *Batch, w *wakes) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b.state.Load() != queued {
		return false
	}
	q.unlink(b)
	b.state.Store(over)
	q.advanceLocked(false, w)
	return true
}

// advanceLocked starts every batch that nothing earlier holds up. It may be
// called at any time, and must be after each event that can make a start
// possible: a submit, a ticket retired, the last sync count gone, an async
// batch complete.
// stays says that the calling thread will look for work before it sleeps.
func (q *queue) advanceLocked(stays bool, w *wakes) {
	for q.running == nil {
		b := q.first
		switch {
		case b == nil:
			q.word.And(^uint64(asyncAround))
			return
		case b.order == Sync:
			q.unlink(b)
			q.word.Add(1)
			if b.park.listed {
				q.pool.waiters.remove(&b.park)
				w.add(&b.park)
			}
			b.state.Store(started) // b is its owner's from here on
		case !b.ready || q.word.Load() != asyncAround:
			return
		default:
			q.unlink(b)
			q.running = b
			q.pool.startLocked(b, stays, w)
		}
	}
}

func (q *queue) push(b *Batch) {
	b.qPrev, b.qNext = q.last, nil
	if q.last == nil {
		q.first = b
	} else {
		q.last.qNext = b
	}
	q.last = b
}

func (q *queue) unlink(b *Batch) {
	if b.qPrev == nil {
		q.first = b.qNext
	} else {
		b.qPrev.qNext = b.qNext
	}
	if b.qNext == nil {
		q.last = b.qPrev
	} else {
		b.qNext.qPrev = b.qPrev
	}
	b.qPrev, b.qNext = nil, nil
}
