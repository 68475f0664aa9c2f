package fault

import (
	"sync"

	"libphoenix/engine"
)

// Event is one moment in the life of a call.
type Event struct {
	Kind  engine.Kind
	FD    int32
	Off   int64
	Ended bool // the call is about to return; else it has begun
}

// trace is the calls in the order in which they began and ended.
type trace struct {
	mu     sync.Mutex
	more   *sync.Cond // events has grown
	on     bool       // protected by mu
	events []Event    // protected by mu
}

// Record makes the script keep the events of all later calls.
func (s *Script) Record() *Script {
	t := &s.trace
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.events, t.more = true, nil, sync.NewCond(&t.mu)
	return s
}

// Events is what was recorded since Record.
func (s *Script) Events() []Event {
	s.trace.mu.Lock()
	defer s.trace.mu.Unlock()
	return append([]Event(nil), s.trace.events...)
}

// WaitEnded returns when n calls have ended since Record.
func (s *Script) WaitEnded(n int) {
	t := &s.trace
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.ended() < n {
		t.more.Wait()
	}
}

func (t *trace) ended() (n int) {
	for _, e := range t.events {
		if e.Ended {
			n++
		}
	}
	return n
}

func (t *trace) add(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on {
		t.events = append(t.events, e)
		t.more.Broadcast()
	}
}
