package fault

import "sync"

// Barrier holds the calls that arrive until Release. Make it with NewBarrier.
type Barrier struct {
	mu     sync.Mutex
	change *sync.Cond // parked or open has changed

	// Protected by mu.
	parked int
	open   bool
}

// NewBarrier returns a closed barrier.
func NewBarrier() *Barrier {
	b := &Barrier{}
	b.change = sync.NewCond(&b.mu)
	return b
}

// pass blocks until the barrier is open.
func (b *Barrier) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parked++
	b.change.Broadcast()
	for !b.open {
		b.change.Wait()
	}
	b.parked--
}

// WaitParked returns when at least n calls are held.
func (b *Barrier) WaitParked(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.parked < n {
		b.change.Wait()
	}
}

// Parked is how many calls are held now.
func (b *Barrier) Parked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parked
}

// Release opens the barrier for good. It may be called more than once.
func (b *Barrier) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = true
	b.change.Broadcast()
}
