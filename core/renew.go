package core

import (
	"math"
	"sync/atomic"

	"libphoenix/connectors"
)

// A program that frees device memory without deregmem, gets the same address
// for other memory and registers that must not be given the old registration:
// the driver has dropped the pin behind it, and its mapping leads nowhere. So
// each duplicate asks for the identity of the memory, where it was known at
// MAP; if it is another one now, the old registration is taken down as the last
// deregmem would do it (no UNMAP), and the range is mapped afresh. References
// of the old one go on counting: each regmem is still matched by one deregmem.

// duplicateLocked counts refs more references for r, which is live, and returns
// its host address. 0 without an error: r is gone meanwhile, and old references
// are to be counted for the range beside refs; d.mu was let go. room is whether a
// fresh registration is at hand.
func (l *Library) duplicateLocked(d *device, r *registration, refs uint32, room bool) (host HostAddr, old uint32, bad *Error) {
	addr, n := r.addr, r.lenBytes
	another := l.anotherLocked(d, r)
	if bad := d.stateErrorLocked(); bad != nil {
		return 0, 0, bad
	}
	switch {
	case another && !room:
		return 0, 0, errNoMemory
	case another:
		old, bad = l.replaceLocked(d, r)
		return 0, old, bad
	case d.ranges.overlapping(addr, n) != r || r.addr != addr || r.lenBytes != n || r.state != regLive:
		return 0, 0, nil
	case r.refs > math.MaxUint32-refs:
		return 0, 0, errNoMemory
	}
	r.refs += refs
	atomic.StoreUint32(&r.pin.Refs, r.refs)
	return r.host, 0, nil
}

// anotherLocked is whether r, which is live, stands for memory that is gone while
// other memory lies at its address. It lets go of d.mu while it asks; r may be
// something else then, for which the answer false is given. Only memory behind a
// device node has an identity at MAP.
func (l *Library) anotherLocked(d *device, r *registration) bool {
	p := r.pin
	addr, n, id := r.addr, r.lenBytes, p.Identity
	if l.life == nil || r.borrowed || p.Life != int32(connectors.LifeKnown) {
		return false
	}
	d.mu.Unlock()
	now, state := l.life.Identity(addr, n)
	d.mu.Lock()
	if state != connectors.LifeKnown || now == id {
		return false
	}
	same := d.ranges.overlapping(addr, n) == r && r.addr == addr && r.lenBytes == n
	return same && r.state == regLive && p.Life == int32(connectors.LifeKnown) && p.Identity == id
}

// replaceLocked takes r down, whose memory is gone, and returns the references
// it had. It lets go of d.mu for as long as I/O is inside. An error: munmap
// failed, and the range stays taken.
func (l *Library) replaceLocked(d *device, r *registration) (refs uint32, bad *Error) {
	refs = r.refs
	r.state = regDraining
	r.gate().Close()
	d.mu.Unlock()
	defer d.mu.Lock()
	if bad := l.retire(r, callRegmem); bad != nil {
		return 0, l.errs.of(bad.Errno, ReasonMap)
	}
	return refs, nil
}
