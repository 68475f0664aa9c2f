package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// stall counts calls in a row that brought nothing forward. What refuses a call
// for a moment (memory, a signal) passes; a filter in front of the kernel can
// answer so for ever, and then something else has to be done.
type stall struct {
	calls int
	since time.Time // of the first of them
}

// A stall is hopeless when it has lasted so long, in both.
const (
	stallCalls = 64
	stallTime  = 200 * time.Millisecond
)

func (s *stall) end() { s.calls = 0 }

// lasts counts one call more and reports whether there were many.
func (s *stall) lasts() bool {
	if s.calls++; s.calls == 1 {
		s.since = time.Now()
	}
	return s.calls > stallCalls
}

// hopeless counts one call more and reports whether to stop.
func (s *stall) hopeless() bool { return s.lasts() && time.Since(s.since) > stallTime }

// pause lets time pass on this very thread, the longer the more often: the
// kernel may have completions to run on it.
func pause(times int) {
	const shortest, longest = 20_000, 2_000_000 // ns
	ts := unix.Timespec{Nsec: min(shortest*int64(times), longest)}
	_ = unix.Nanosleep(&ts, nil)
}
