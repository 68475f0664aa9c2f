package core

import (
	"syscall"

	"libphoenix/engine"
)

// This file is the only place where device addresses become host addresses.

// resolveChunk is how many requests are resolved before a device's lock is let
// go for an instant, so that a huge batch holds up no regmem.
const resolveChunk = 1024

// resolver turns the requests of one batch into ops.
type resolver struct {
	l      *Library
	b      *batch
	dev    *device       // its mu is read-locked; nil: none is
	reg    *registration // of the last device request, valid while dev is locked; nil: none
	stager engine.Stager // nil: device memory is mapped
	held   uint32        // group of the last op: its gate is entered already; 0: none
}

// resolve reads each request once. One that can be carried out becomes an op
// of b that holds the gate of its registration; consecutive ops of the same
// registration share one entry. The others count in b.unresolved.
func (l *Library) resolve(reqs []Request, b *batch) {
	rs := resolver{l: l, b: b, stager: l.stager()}
	defer rs.unlock()
	report := l.logs(LevelError)
	for i := range reqs {
		q := reqs[i]
		if why := rs.add(q, uint32(i)); why != 0 {
			b.unresolved++
			if report {
				rs.unlock() // writing a line blocks
				l.tellUnresolved(b.call, q, why)
			}
		}
		if i%resolveChunk == resolveChunk-1 {
			rs.unlock()
		}
	}
}

// add appends the op of a request, or says why there is none.
func (rs *resolver) add(q Request, index uint32) Reason {
	if why := fileRange(q.Offset, q.Len); why != 0 {
		return why
	}
	var host HostAddr
	group := uint32(0)
	if q.Device < 0 {
		at, ok := cpuExtent(q.Buf, q.BufOffset, q.Len)
		if !ok {
			return ReasonCPUAddress
		}
		if q.Buf == 0 {
			return ReasonNullAddress
		}
		host = at
	} else {
		r, why := rs.find(q.Device, q.Buf)
		if why != 0 {
			return why
		}
		if host, why = r.extent(q.Buf, q.BufOffset, q.Len); why != 0 {
			return why
		}
		if group = r.group(); group != rs.held && !r.gate().Enter() {
			return ReasonRegionClosing
		}
		rs.b.Stager = rs.stager
	}
	rs.held = group
	rs.b.Ops = append(rs.b.Ops, engine.Op{ // room for all requests: never moves
		Addr: host, Len: q.Len, Off: q.Offset, FD: q.FD, Index: index, Group: group,
	})
	return 0
}

// find is the registration that buf points into. Its device stays read-locked.
func (rs *resolver) find(id int32, buf DevAddr) (*registration, Reason) {
	if rs.dev == nil || rs.dev.id != id {
		rs.unlock()
		d, bad := rs.l.device(int(id))
		if bad != nil {
			return nil, bad.Why
		}
		d.mu.RLock()
		rs.dev = d
	}
	if bad := rs.dev.stateErrorLocked(); bad != nil {
		return nil, bad.Why
	}
	if rs.reg == nil || !rs.reg.holds(buf) {
		r := rs.dev.ranges.floor(buf)
		if r == nil || !r.holds(buf) {
			return nil, ReasonUnregistered
		}
		rs.reg = r
	}
	return rs.reg, 0
}

func (rs *resolver) unlock() {
	if rs.dev != nil {
		rs.dev.mu.RUnlock()
		rs.dev, rs.reg = nil, nil
	}
}

// enter is resolve for a single transfer: the caller leaves the registration's gate.
func (l *Library) enter(id int32, buf DevAddr, bufOff int64, n uint64) (*registration, HostAddr, *Error) {
	d, bad := l.device(int(id))
	if bad != nil {
		return nil, 0, bad
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if bad := d.stateErrorLocked(); bad != nil {
		return nil, 0, bad
	}
	if bufOff < 0 {
		return nil, 0, errBufOffset
	}
	r := d.ranges.floor(buf)
	if r == nil || !r.holds(buf) {
		return nil, 0, errUnregistered
	}
	host, why := r.extent(buf, bufOff, n)
	if why != 0 {
		return nil, 0, errOutside
	}
	if !r.gate().Enter() {
		return nil, 0, errRegionClosing
	}
	return r, host, nil
}

// tellUnresolved reports a request that got no op.
func (l *Library) tellUnresolved(call string, q Request, why Reason) {
	l.log.Event(Event{Level: LevelError, Call: call, Device: q.Device, Addr: uint64(q.Buf) + uint64(q.BufOffset),
		Len: q.Len, Offset: q.Offset, FD: q.FD, Errno: syscall.EFAULT, Reason: why.String()})
}
