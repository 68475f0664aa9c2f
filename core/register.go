package core

import (
	"math"
	"sync/atomic"
	"syscall"

	"libphoenix/connectors"
	"libphoenix/internal/phxdev"
)

// Register makes [addr, addr+n) of device memory usable for I/O and returns
// the host address of its first byte. An exact duplicate of a live range is
// one more reference to it; while such a duplicate is being made or taken down
// by another thread the call waits.
//
// Errors: ClassArgument EINVAL (NULL, length, alignment, overflow, overlap);
// ClassDevice EINVAL bad id, ENODEV not open, ESHUTDOWN closing; ReasonMap
// with the errno of mmap, MAP or the range check; ENOMEM.
func (l *Library) Register(id int, addr DevAddr, n uint64) (HostAddr, error) {
	d, bad := l.device(id)
	if bad != nil {
		return 0, bad
	}
	if bad := l.checkRange(addr, n); bad != nil {
		return 0, bad
	}
	l.watchValve(callRegmem, id)
	if bad := d.begin(); bad != nil {
		return 0, bad
	}
	defer d.end()
	r, host, bad := l.reserve(d, addr, n)
	if bad != nil {
		return 0, bad
	}
	if r == nil {
		return host, nil
	}
	next := regFree
	defer func() { l.settle(r, next) }() // a panic undoes the reservation, too
	host, err := l.mapPin(r)
	if err != nil {
		return 0, l.detailed(l.errs.of(errnoOf(err), ReasonMap), err)
	}
	next = regLive
	l.tellRange(LevelDebug, callRegmem, r, 0, "registered")
	return host, nil
}

func (l *Library) checkRange(addr DevAddr, n uint64) *Error {
	page := l.conn.PageSize()
	switch {
	case addr == 0:
		return errNullAddress
	case n == 0 || n%page != 0:
		return errLength
	case uint64(addr)%page != 0:
		return errAlignment
	case uint64(addr) > math.MaxUint64-n:
		return errRangeOverflow
	}
	return nil
}

// reserve blocks [addr, addr+n) for a fresh registration, or answers nil and
// the host address of a live one that it counted a reference for.
func (l *Library) reserve(d *device, addr DevAddr, n uint64) (*registration, HostAddr, *Error) {
	fresh := l.takeRegistration() // nil is an error only if it is needed
	host, bad, refs := HostAddr(0), (*Error)(nil), uint32(1)
	d.mu.Lock()
	for {
		if bad = d.stateErrorLocked(); bad != nil {
			break
		}
		r := d.ranges.overlapping(addr, n)
		if r == nil && fresh == nil {
			bad = errNoMemory
			break
		}
		if r == nil {
			fresh.dev, fresh.addr, fresh.lenBytes, fresh.borrowed = d, addr, n, false
			fresh.state, fresh.refs = regReserved, refs
			d.ranges.insert(fresh)
			d.mu.Unlock()
			return fresh, 0, nil
		}
		if r.addr != addr || r.lenBytes != n || r.state == regStuck {
			bad = errOverlap
			break
		}
		if r.state == regLive {
			var old uint32
			host, old, bad = l.duplicateLocked(d, r, refs, fresh != nil)
			if host != 0 || bad != nil {
				break
			}
			refs += old
			continue
		}
		d.changed.Wait()
	}
	d.mu.Unlock()
	if fresh != nil {
		l.regs.give(fresh.slot)
	}
	return nil, host, bad
}

// mapPin maps a reserved registration and records in its Pin what is due for
// it; no signal comes between the two, for its handler may call exit, which goes
// by the Pin. The identity is asked before MAP: memory that is freed in between
// then looks freed, which leaks a pin at worst.
func (l *Library) mapPin(r *registration) (HostAddr, error) {
	p, d := r.pin, r.dev
	p.PID, p.FD, p.Device, p.Refs = int32(syscall.Getpid()), int32(d.node.FD()), d.id, r.refs
	p.Addr, p.Len = uint64(r.addr), r.lenBytes
	p.Identity, p.Life = l.identity(r)
	due := PinEmbedded
	if l.reach() == reachNode {
		due = PinMapped
		if l.life == nil || p.Life != int32(connectors.LifeUnasked) {
			l.ledger.Pinned()
		}
		held := phxdev.HoldSignals()
		defer held.Release()
	}
	host, err := d.node.Map(r.addr, r.lenBytes)
	if err != nil {
		return 0, err
	}
	p.Host = uint64(host)
	atomic.StoreUint32(&p.State, due)
	return host, nil
}

// settle ends a step that owned r: the registration is in state next, whoever
// waited for that is told, and regFree gives the slot back.
func (l *Library) settle(r *registration, next regState) {
	d := r.dev
	d.mu.Lock()
	r.state = next
	switch next {
	case regLive:
		r.host = HostAddr(r.pin.Host)
		r.gate().Reopen()
	case regFree:
		d.ranges.remove(r)
	}
	d.changed.Broadcast()
	d.mu.Unlock()
	if next == regFree {
		l.regs.give(r.slot)
	}
}
