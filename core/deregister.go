package core

import (
	"sync/atomic"

	"libphoenix/internal/phxdev"
)

// Deregister drops one reference of the registration that starts at addr and
// is n bytes long. The last one refuses new I/O on it, waits for the I/O
// inside, and unmaps it.
//
// Errors, all ClassDevice: EINVAL bad id; ENODEV not open; ESHUTDOWN closing;
// ENOENT unknown or interior address, other length, or another thread's last
// deregmem is at it; ReasonUnmap with the kernel's errno: the registration
// stays and works, try again; ReasonMunmap likewise: the range stays taken,
// I/O is refused, try again.
func (l *Library) Deregister(id int, addr DevAddr, n uint64) error {
	d, bad := l.device(id)
	if bad != nil {
		return bad
	}
	if bad := d.begin(); bad != nil {
		return bad
	}
	defer d.end()
	r, bad := d.unreference(addr, n)
	if bad != nil {
		return bad
	}
	if r != nil {
		if bad := l.retire(r, callDeregmem); bad != nil {
			return bad
		}
	}
	return nil
}

// unreference drops one reference. If it was the last, the caller owns the
// registration, in state regDraining and with its gate closed.
func (d *device) unreference(addr DevAddr, n uint64) (last *registration, bad *Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.ranges.floor(addr)
	if r == nil || r.addr != addr || (r.state != regLive && r.state != regStuck) {
		return nil, errUnknownRange
	}
	if r.lenBytes != n {
		return nil, errWrongLength
	}
	if r.refs > 1 {
		r.refs--
		atomic.StoreUint32(&r.pin.Refs, r.refs)
		return nil, nil
	}
	r.state = regDraining
	r.gate().Close()
	return r, nil
}

// retire takes r down for the last deregmem, or for a regmem that found other
// memory there. What fails stays as it was.
func (l *Library) retire(r *registration, call string) *Error {
	next := regStuck // after a panic nobody knows about UNMAP: never a second one
	defer func() { l.settle(r, next) }()
	r.gate().Drain()
	if bad := l.unpin(r, call); bad != nil {
		if atomic.LoadUint32(&r.pin.State) == PinMapped {
			next = regLive
		}
		return bad
	}
	if bad := l.unmap(r); bad != nil {
		return bad
	}
	next = regFree
	l.tellRange(LevelDebug, call, r, 0, "deregistered")
	return nil
}

// retireAnyway takes r down for the last close: a failure is reported, and the
// registration is gone all the same.
func (l *Library) retireAnyway(r *registration) *Error {
	defer l.settle(r, regFree)
	defer atomic.StoreUint32(&r.pin.State, PinFree)
	r.gate().Close()
	r.gate().Drain()
	failed := l.unpin(r, callClose)
	if bad := l.unmap(r); bad != nil && failed == nil {
		failed = bad
	}
	if failed != nil {
		l.tellRange(LevelError, callClose, r, failed.Errno, failed.Why.String())
	}
	return failed
}

// unpin does UNMAP if it is due, once. The Pin says so before the kernel is
// asked: whoever reads it concurrently (the exit handler) must not do it again.
// A UNMAP that fails has not been done.
func (l *Library) unpin(r *registration, call string) *Error {
	if r.borrowed || atomic.LoadUint32(&r.pin.State) != PinMapped {
		return nil
	}
	doubt, err := l.unpinOnce(r)
	if doubt != "" {
		l.tellRange(LevelWarn, call, r, 0, doubt)
	}
	if err != nil {
		return l.errs.of(errnoOf(err), ReasonUnmap)
	}
	return nil
}

// unpinOnce takes the note that UNMAP is due and does what it says, unless there
// is doubt; no signal comes in between (mapPin). The exit handler may have been
// first.
func (l *Library) unpinOnce(r *registration) (doubt string, err error) {
	held := phxdev.HoldSignals()
	defer held.Release()
	if !atomic.CompareAndSwapUint32(&r.pin.State, PinMapped, PinUnmapped) {
		return "", nil
	}
	if doubt = l.doubt(r); doubt != "" {
		return doubt, nil
	}
	if err = r.dev.node.Unmap(r.addr, r.host, r.lenBytes); err != nil {
		atomic.StoreUint32(&r.pin.State, PinMapped)
	}
	return "", err
}

// unmap gives the address space back.
func (l *Library) unmap(r *registration) *Error {
	if r.borrowed {
		atomic.StoreUint32(&r.pin.State, PinFree)
		return nil
	}
	if err := r.dev.node.Munmap(r.host, r.lenBytes); err != nil {
		return l.errs.of(errnoOf(err), ReasonMunmap)
	}
	atomic.StoreUint32(&r.pin.State, PinFree)
	return nil
}
