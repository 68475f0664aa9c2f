package fault

import (
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// Script is an engine.IO that follows rules. The zero value follows none. All
// methods may be called from any thread.
type Script struct {
	calls atomic.Int64
	trace trace

	mu    sync.Mutex
	rules []*counted // protected by mu
}

type counted struct {
	Rule
	seen int // matching calls so far; protected by Script.mu
}

// Add appends rules. A call follows the first rule that applies to it, and only
// the rules up to that one count it: two rules that say Nth(1) and match the
// same calls apply to the first and to the second of them.
func (s *Script) Add(rules ...Rule) *Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rules {
		s.rules = append(s.rules, &counted{Rule: r})
	}
	return s
}

// Reset drops all rules and forgets the calls; those held at barriers stay.
func (s *Script) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
	s.calls.Store(0)
}

// Calls is how many calls have begun.
func (s *Script) Calls() int64 { return s.calls.Load() }

// Pread implements engine.IO.
func (s *Script) Pread(fd int32, addr engine.HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	return s.call(engine.Read, unix.SYS_PREAD64, fd, addr, n, off)
}

// Pwrite implements engine.IO.
func (s *Script) Pwrite(fd int32, addr engine.HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	return s.call(engine.Write, unix.SYS_PWRITE64, fd, addr, n, off)
}

func (s *Script) call(k engine.Kind, nr uintptr, fd int32, addr engine.HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	s.calls.Add(1)
	s.trace.add(Event{k, fd, off, false})
	defer s.trace.add(Event{k, fd, off, true})
	if r, ok := s.find(k, fd, off); ok {
		if r.barrier != nil {
			r.barrier.pass()
		}
		switch {
		case r.panics:
			panic(r.value)
		case r.errno != 0:
			return -1, r.errno
		case r.cut:
			if n = min(n, r.short); n == 0 {
				return 0, 0
			}
		}
	}
	moved, _, errno := unix.Syscall6(nr, uintptr(fd), uintptr(addr), uintptr(n), uintptr(off), 0, 0)
	return int64(moved), errno
}

func (s *Script) find(k engine.Kind, fd int32, off int64) (Rule, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if !r.matches(k, fd, off) {
			continue
		}
		r.seen++
		if r.nth == 0 || r.seen == r.nth {
			return r.Rule, true
		}
	}
	return Rule{}, false
}

// NewEngine builds a sync engine that follows s instead of cfg.IO.
func NewEngine(s *Script, cfg engine.Config) engine.Engine {
	cfg.IO = s
	return engine.NewSync(cfg)
}
