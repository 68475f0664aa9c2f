package emulator

import (
	"cmp"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// ledger knows every region and judges MAP and UNMAP. It makes no system call:
// what the caller saw is passed in. All of it is under supervisor.mu.
type ledger struct {
	byFile map[fileID]*region
	byHost map[place]*region // the last region that MAP pinned there
}

// place is an address of a process.
type place struct {
	pid  int
	host uint64
}

func newLedger() *ledger {
	return &ledger{byFile: map[fileID]*region{}, byHost: map[place]*region{}}
}

// offer takes a region that an mmap asked for.
func (l *ledger) offer(r *region) { l.byFile[r.file] = r }

// forget drops a region whose mmap came to nothing and returns its memory,
// which the caller closes; -1 if there is none left.
func (l *ledger) forget(r *region) int {
	delete(l.byFile, r.file)
	memory := r.memory
	r.memory = -1
	return memory
}

// judgeMap decides on a MAP of process pid through a descriptor of device. m
// is the mapping that holds p.host; none: there is no such mapping. With errno
// 0 the caller fills the region and calls pin. fault is set if the call would
// have harmed the kernel module.
func (l *ledger) judgeMap(pid, device int, p param, m vma, none bool) (r *region, errno syscall.Errno, fault *Fault) {
	switch {
	case p.hostLen == 0 || p.hostLen%pinUnit != 0 || p.addrLen != p.hostLen:
		return nil, unix.EINVAL, nil
	case p.addr == 0 || p.addr%pinUnit != 0 || p.addr+p.addrLen < p.addr:
		return nil, unix.EINVAL, nil
	case none:
		return nil, unix.EFAULT, nil
	}
	r = l.byFile[m.file]
	switch {
	case r == nil || r.device != device || m.start != p.host || m.end-m.start != p.hostLen || r.length != p.hostLen:
		return nil, unix.EINVAL, nil
	case r.state != offered:
		return nil, unix.EBUSY, r.fault(MapTwice, pid)
	case r.private:
		return r, 0, r.at(p).fault(PrivateMap, pid)
	}
	return r, 0, nil
}

// pin makes an offered region a registration of process pid. If the address
// held an earlier one, that has lost its mapping: the fault says so if its pin
// was never dropped.
func (l *ledger) pin(r *region, pid int, p param) (fault *Fault) {
	where := place{pid, p.host}
	if old := l.byHost[where]; old != nil && old != r {
		if old.state == pinned {
			fault = old.fault(MunmapFirst, pid)
		}
		delete(l.byFile, old.file)
	}
	l.byHost[where] = r
	r.state, r.pid, r.host, r.addr = pinned, pid, p.host, p.addr
	return fault
}

// judgeUnmap decides on an UNMAP of process pid, whose answer is 0 whatever it
// does. m and none are as for judgeMap. commit changes the ledger; the caller
// calls it once the answer was delivered.
func (l *ledger) judgeUnmap(pid int, p param, m vma, none bool) (commit func(), fault *Fault) {
	nothing := func() {}
	r := l.byFile[m.file]
	if none || r == nil {
		if r = l.byHost[place{pid, p.host}]; r == nil {
			return nothing, strayFault(UnmapUnknown, pid, p)
		}
		if r.state == pinned {
			return func() { r.state = leaked }, r.fault(MunmapFirst, pid)
		}
	}
	switch r.state {
	case offered:
		return nothing, r.at(p).fault(UnmapBeforeMap, pid)
	case released, leaked:
		return nothing, r.fault(UnmapTwice, pid)
	case revoked:
		return nothing, r.fault(UnmapRevoked, pid)
	}
	release := func() { r.state, r.by = released, pid }
	switch {
	case r.host != p.host || m.start != p.host:
		return nothing, r.fault(UnmapElsewhere, pid)
	case r.length != p.hostLen || m.end-m.start != p.hostLen:
		return nothing, r.fault(UnmapLength, pid)
	case r.pid != pid:
		return release, r.fault(UnmapByOther, pid)
	}
	return release, nil
}

// revoke plays the driver that frees device memory: every live pin for which
// which holds is gone. It returns them.
func (l *ledger) revoke(which func(*region) bool) []*region {
	gone := l.pins(which)
	for _, r := range gone {
		r.state = revoked
	}
	return gone
}

// pins are the live pins for which which holds, in order of process and
// address.
func (l *ledger) pins(which func(*region) bool) []*region {
	var live []*region
	for _, r := range l.byFile {
		if r.state == pinned && which(r) {
			live = append(live, r)
		}
	}
	slices.SortFunc(live, func(a, b *region) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.host, b.host))
	})
	return live
}

// end takes a process that has ended out of the ledger. Its live pins stay
// known, as leaked: a child may yet try to UNMAP one. memory is what the
// caller closes.
func (l *ledger) end(pid int) (faults []*Fault, memory []int) {
	for _, r := range l.pins(func(r *region) bool { return r.pid == pid }) {
		faults = append(faults, r.fault(ExitPinned, pid))
		r.state = leaked
	}
	for file, r := range l.byFile {
		if r.pid != pid {
			continue
		}
		if r.memory >= 0 {
			memory = append(memory, r.memory)
			r.memory = -1
		}
		if r.state != leaked {
			delete(l.byFile, file)
		}
	}
	for where := range l.byHost {
		if where.pid == pid {
			delete(l.byHost, where)
		}
	}
	return faults, memory
}
