package emulator

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// offer is a descriptor that was replaced for an mmap which the kernel may not
// have run yet. It is settled once the kernel cannot look at the descriptor
// any more; only then may the next mmap of the process replace it.
type offer struct {
	tid     uint32        // set at the replacement, then read-only, as are the next two
	file    fileID        // what it was replaced with
	ran     time.Duration // CPU time of the thread until then; -1: unknown
	settled bool          // the thread has called again; under supervisor.mu
}

// enough is the CPU time after which a thread has surely passed the first
// instructions of mmap, which it runs as soon as it is answered. It is long
// because what the kernel has not yet booked, or a hypervisor took away, is in
// it: 2 ms were seen. Only a thread whose mmap failed and that computes
// without a call afterwards gets that far.
const enough = time.Second

// settled notes that a thread has made another call.
func (s *supervisor) settled(tid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.offers[tid]; o != nil {
		o.settled = true
		delete(s.offers, tid)
	}
}

// settle waits until the process's last replacement is settled. Nothing tells
// of an mmap's end, so it looks, soon and then less often. Two threads of a
// process that map devices at the same instant are the only ones to wait.
func (s *supervisor) settle(p *process) {
	if p.last == nil {
		return
	}
	for pause := 10 * time.Microsecond; !s.isSettled(p); pause = min(2*pause, time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-s.stopped:
			return
		}
	}
	s.mu.Lock()
	if s.offers[p.last.tid] == p.last {
		delete(s.offers, p.last.tid)
	}
	s.mu.Unlock()
	p.last = nil
}

func (s *supervisor) isSettled(p *process) bool {
	o := p.last
	s.mu.Lock()
	called := o.settled
	s.mu.Unlock()
	return called || leftMmap(p.pid, o.tid) || maps(p.pid, o.file) || o.ran >= 0 && ranFor(p.pid, o.tid) > o.ran+enough
}

// leftMmap is whether a thread is seen outside mmap: dead, in another system
// call, or asleep outside any. One that runs shows neither.
func leftMmap(pid int, tid uint32) bool {
	task := filepath.Join("/proc", strconv.Itoa(pid), "task", strconv.FormatUint(uint64(tid), 10))
	stat, err := os.ReadFile(filepath.Join(task, "stat"))
	if err != nil {
		return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	if end := bytes.LastIndexByte(stat, ')'); end >= 0 && end+2 < len(stat) && strings.IndexByte("ZX", stat[end+2]) >= 0 {
		return true
	}
	call, err := os.ReadFile(filepath.Join(task, "syscall"))
	if err != nil {
		return false // not allowed, or gone: the next look at stat tells
	}
	nr, _, _ := strings.Cut(strings.TrimSpace(string(call)), " ")
	return nr != "running" && nr != strconv.Itoa(unix.SYS_MMAP)
}

// ranFor is how much CPU time a thread has had; -1 if the kernel does not say.
func ranFor(pid int, tid uint32) time.Duration {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "task", strconv.FormatUint(uint64(tid), 10), "schedstat"))
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return -1
	}
	return time.Duration(ns)
}
