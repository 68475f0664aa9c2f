package emulator

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// request is a MAP or an UNMAP, and what the supervisor saw of its process.
type request struct {
	n      *notification
	pid    int
	device int
	param
	mapping vma
	none    bool // no mapping holds param.host
}

// ioctl answers MAP and UNMAP.
func (s *supervisor) ioctl(n *notification) {
	device := deviceOf(n.tid, int(int32(n.args[0])))
	q := request{n: n, device: device, pid: processOf(n.tid)}
	if device < 0 || q.pid == 0 {
		s.listener.proceed(n.id) // ENOTTY, or the thread is gone
		return
	}
	op, answer := "map", s.answerMap
	if uint32(n.args[1]) == cmdUnmap {
		op, answer = "unmap", s.answerUnmap
	}
	name := s.nameFor(q.pid)
	b := make([]byte, paramBytes)
	errno := readMemory(n.tid, n.args[2], b)
	if errno == 0 {
		q.param = decodeParam(b)
		errno = s.applyRule(op)
	}
	if errno == 0 {
		q.mapping, errno = mappingAt(q.pid, q.host)
		q.none = errno == unix.ENOENT
	}
	switch {
	case errno != 0 && !q.none:
		s.listener.reply(n.id, 0, errno)
	case s.listener.waits(n.id):
		var faults []*Fault
		errno, faults = answer(q)
		for _, f := range faults {
			f.Name = name
			s.report.fault(f)
		}
	}
	s.report.event("%s %s on device %d, host %#x, device memory %#x, %d bytes: %s", who(q.pid, name), op, device, q.host, q.addr, q.hostLen, outcome(errno))
}

// answerMap judges a MAP, fills the memory, answers and writes it down.
func (s *supervisor) answerMap(q request) (syscall.Errno, []*Fault) {
	if _, err := s.processFor(q.pid); err != nil { // its mmap may have been its parent's
		s.listener.reply(q.n.id, 0, unix.ENOMEM)
		return unix.ENOMEM, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, errno, fault := s.ledger.judgeMap(q.pid, q.device, q.param, q.mapping, q.none)
	if errno == 0 {
		errno = errnoOf(unix.Ftruncate(r.memory, int64(r.offset+r.length)))
	}
	if errno != 0 {
		if !s.listener.reply(q.n.id, 0, errno) {
			return errno, nil // it will be asked again, or by nobody
		}
		return errno, some(fault)
	}
	before := *r
	lost := s.ledger.pin(r, q.pid, q.param)
	if _, freed := s.inject.next("revoke"); freed {
		r.state = revoked
	}
	if !s.listener.reply(q.n.id, 0, 0) {
		*r = before
		_ = unix.Ftruncate(r.memory, 0)
		return unix.EINTR, some(lost)
	}
	_ = unix.Close(r.memory)
	r.memory = -1
	s.report.mapped()
	return 0, some(lost, fault)
}

// answerUnmap judges an UNMAP, answers and writes it down.
func (s *supervisor) answerUnmap(q request) (syscall.Errno, []*Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	commit, fault := s.ledger.judgeUnmap(q.pid, q.param, q.mapping, q.none)
	if !s.listener.reply(q.n.id, 0, 0) {
		return unix.EINTR, nil
	}
	commit()
	return 0, some(fault)
}

// some is the faults that there are.
func some(faults ...*Fault) []*Fault {
	return slices.DeleteFunc(faults, func(f *Fault) bool { return f == nil })
}
