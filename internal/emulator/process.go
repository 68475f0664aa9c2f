package emulator

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// process is one that has called mmap on a device.
type process struct {
	pid   int    // set by processFor, then read-only
	name  string // set by processFor, then read-only
	pidfd int    // owned by its watcher; -1 once it has closed it; under supervisor.mu

	mmapMu  sync.Mutex // one replacement of a descriptor at a time
	last    *offer     // the last one, if it may not be settled; under mmapMu
	idle    []*region  // those that MAP had not filled when last seen; under mmapMu
	sweepAt int        // length of idle at which to sweep; under mmapMu
}

// processFor is the record of a process, made and watched if it is new.
func (s *supervisor) processFor(pid int) (*process, error) {
	s.mu.Lock()
	p := s.processes[pid]
	over := p != nil && ended(p.pidfd)
	s.mu.Unlock()
	switch {
	case over:
		s.retire(p) // its number is another's now; the watcher has not come to it
	case p != nil:
		return p, nil
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", pid, err)
	}
	p = &process{pid: pid, name: nameOf(pid), pidfd: pidfd}
	s.mu.Lock()
	if other := s.processes[pid]; other != nil { // another thread of it was faster
		s.mu.Unlock()
		_ = unix.Close(pidfd)
		return other, nil
	}
	s.processes[pid] = p
	s.mu.Unlock()
	s.group.Go(func() { s.watch(p) })
	return p, nil
}

// nameFor is what ps shows of a process, or showed when it was first seen.
func (s *supervisor) nameFor(pid int) string {
	s.mu.Lock()
	p := s.processes[pid]
	s.mu.Unlock()
	if p != nil {
		return p.name
	}
	return nameOf(pid)
}

// watch waits for the end of a process, or of Run.
func (s *supervisor) watch(p *process) {
	poll := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}, {Fd: int32(s.stop)}}
	for {
		_, err := unix.Poll(poll, -1)
		if err == unix.EINTR {
			continue
		}
		s.retire(p)
		s.mu.Lock()
		p.pidfd = -1
		_ = unix.Close(int(poll[0].Fd))
		s.mu.Unlock()
		return
	}
}

func ended(pidfd int) bool {
	poll := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, _ := unix.Poll(poll, 0)
	return n > 0
}

// retire judges what a process that has ended left behind, once.
func (s *supervisor) retire(p *process) {
	s.mu.Lock()
	if s.processes[p.pid] != p {
		s.mu.Unlock()
		return
	}
	delete(s.processes, p.pid)
	faults, memory := s.ledger.end(p.pid)
	s.mu.Unlock()
	for _, fd := range memory {
		_ = unix.Close(fd)
	}
	for _, f := range faults {
		f.Name = p.name
		s.report.fault(f)
	}
}
