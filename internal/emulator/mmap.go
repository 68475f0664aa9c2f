package emulator

import (
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// mmap gives the mapping that a thread asks for memory of its own.
func (s *supervisor) mmap(n *notification) {
	fd := int(int32(n.args[4]))
	device := deviceOf(n.tid, fd)
	flags, open := openFlags(n.tid, fd)
	pid := processOf(n.tid)
	if device < 0 || !open || pid == 0 || !s.listener.waits(n.id) || n.args[1] == 0 || flags&unix.O_ACCMODE != unix.O_RDWR {
		s.listener.proceed(n.id) // not ours, or the kernel's own error
		return
	}
	errno := s.applyRule("mmap")
	if errno == 0 {
		errno = s.offer(n, pid, device, flags&unix.O_CLOEXEC != 0)
	}
	s.report.event("%s mmap of device %d, %d bytes: %s", who(pid, s.nameFor(pid)), device, n.args[1], outcome(errno))
	if errno != 0 {
		s.listener.reply(n.id, 0, errno)
	}
}

// offer replaces the descriptor and lets the mmap go on. With an errno the
// call still waits, or its thread is gone.
func (s *supervisor) offer(n *notification, pid, device int, closeOnExec bool) syscall.Errno {
	p, err := s.processFor(pid)
	if err != nil {
		return errnoOf(err)
	}
	p.mmapMu.Lock()
	defer p.mmapMu.Unlock()
	s.settle(p)
	memory, file, err := newMemory(nodeName(device) + ".mmap")
	if err != nil {
		s.report.trouble(fmt.Sprintf("an mmap failed for want of the emulator's own resources: %v", err))
		return unix.ENOMEM
	}
	page := uint64(os.Getpagesize())
	r := &region{
		device: device, file: file, memory: memory, pid: pid,
		offset:  n.args[5],
		length:  (n.args[1] + page - 1) &^ (page - 1),
		private: n.args[3]&unix.MAP_TYPE == unix.MAP_PRIVATE,
	}
	o := &offer{tid: n.tid, file: file, ran: ranFor(pid, n.tid)}
	s.mu.Lock()
	s.ledger.offer(r)
	s.offers[n.tid] = o
	s.mu.Unlock()
	errno := s.listener.replace(n.id, int(int32(n.args[4])), memory, closeOnExec)
	if errno == 0 && s.listener.proceed(n.id) {
		s.sweep(p)
		p.last = o
		p.idle = append(p.idle, r)
		return 0
	}
	s.mu.Lock()
	if s.offers[n.tid] == o {
		delete(s.offers, n.tid)
	}
	s.mu.Unlock()
	s.discard(r)
	if errno == 0 {
		errno = unix.ESRCH
	}
	return errno
}

// discard drops a region that MAP has not filled.
func (s *supervisor) discard(r *region) {
	s.mu.Lock()
	memory := -1
	if r.state == offered {
		memory = s.ledger.forget(r)
	}
	s.mu.Unlock()
	if memory >= 0 {
		_ = unix.Close(memory)
	}
}

// sweepAt is how many regions without MAP a process may have before those are
// looked for whose mmap failed or was undone.
const sweepAt = 64

// sweep closes the memory of mmaps that have left no mapping. The caller holds
// p.mmapMu and all offers of the process are settled.
func (s *supervisor) sweep(p *process) {
	if len(p.idle) < max(sweepAt, p.sweepAt) {
		return
	}
	s.mu.Lock()
	p.idle = slices.DeleteFunc(p.idle, func(r *region) bool { return r.state != offered })
	s.mu.Unlock()
	p.idle = slices.DeleteFunc(p.idle, func(r *region) bool {
		if maps(p.pid, r.file) {
			return false
		}
		s.discard(r)
		return true
	})
	p.sweepAt = 2 * len(p.idle)
}
