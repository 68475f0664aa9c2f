package engine

import (
	"sync/atomic"

	"libphoenix/internal/futex"
)

// parker is where one thread sleeps. The thread arms it under queue.mu and
// sleeps outside; whoever wakes it takes it off its idle list under queue.mu,
// collects it in wakes and fires those outside. From the arming until the
// word is awake again the thread stays here, so the links are the waker's.
type parker struct {
	word       atomic.Uint32
	listed     bool    // on an idle list; protected by queue.mu
	prev, next *parker // of the idle list, then (next) of wakes
}

// Values of parker.word.
const (
	awake    = iota
	armed    // about to sleep
	sleeping // in the kernel, or on the way: a wake-up needs the system call
)

func (p *parker) armLocked() { p.word.Store(armed) }

func (p *parker) sleep() {
	for p.word.CompareAndSwap(armed, sleeping) || p.word.Load() == sleeping {
		futex.Wait(&p.word, sleeping)
	}
}

// wake lets the thread go. After the swap it may be gone and its batch in use
// again; the system call then only names an address, and at worst a later
// sleeper there wakes, sees its word unchanged and sleeps on.
func (p *parker) wake() {
	if p.word.Swap(awake) == sleeping {
		futex.Wake(&p.word, 1)
	}
}

// wakes are parkers to be woken once queue.mu is released.
type wakes struct{ first *parker }

func (w *wakes) add(p *parker) { p.next, w.first = w.first, p }

func (w *wakes) fire() {
	for p := w.first; p != nil; {
		next := p.next // p is not ours after wake
		p.wake()
		p = next
	}
}

// idleList holds sleeping threads in the order in which they came.
type idleList struct{ first, last *parker }

func (l *idleList) push(p *parker) {
	p.prev, p.next, p.listed = l.last, nil, true
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
}

func (l *idleList) remove(p *parker) {
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next, p.listed = nil, nil, false
}
