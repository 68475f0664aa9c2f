package statemachine

import (
	"errors"
	"math"
	"slices"
	"syscall"

	"libphoenix/core"
)

// answer is how a call ends; the zero value: it succeeds.
type answer struct {
	errno syscall.Errno
	why   core.Reason
}

// answerOf takes an error of the library apart.
func answerOf(err error) answer {
	if err == nil {
		return answer{}
	}
	e := new(core.Error)
	if !errors.As(err, &e) {
		return answer{errno: 0xffff} // not an error of core: nothing equals it
	}
	return answer{e.Errno, e.Why}
}

func (a answer) ok() bool { return a == answer{} }

func (a answer) String() string {
	if a.ok() {
		return "success"
	}
	return (&core.Error{Errno: a.errno, Why: a.why}).Error()
}

// The answers of docs/abi.md §2 that do not come from the kernel.
func notOpen() answer      { return answer{syscall.ENODEV, core.ReasonNotOpen} }
func closing() answer      { return answer{syscall.ESHUTDOWN, core.ReasonClosing} }
func busy() answer         { return answer{syscall.EBUSY, core.ReasonClosing} }
func badDevice() answer    { return answer{syscall.EINVAL, core.ReasonBadDevice} }
func overlap() answer      { return answer{syscall.EINVAL, core.ReasonOverlap} }
func unknown() answer      { return answer{syscall.ENOENT, core.ReasonUnknownRange} }
func wrongLength() answer  { return answer{syscall.ENOENT, core.ReasonWrongLength} }
func unregistered() answer { return answer{syscall.EFAULT, core.ReasonUnregistered} }
func outside() answer      { return answer{syscall.EFAULT, core.ReasonOutside} }
func removed() answer      { return answer{syscall.EFAULT, core.ReasonRegionClosing} }
func badHandle() answer    { return answer{syscall.EINVAL, core.ReasonBadHandle} }
func noMap() answer        { return answer{syscall.ENOMEM, core.ReasonMap} }
func noUnmap() answer      { return answer{syscall.EIO, core.ReasonUnmap} }
func noMunmap() answer     { return answer{syscall.ENOMEM, core.ReasonMunmap} }

// phase is where a device or a range is in its life.
type phase uint8

const (
	gone     phase = iota
	making         // a range: a regmem maps it
	live           // a device: open
	draining       // the last deregmem, or last close, is at it
	stuck          // a range: its munmap failed
)

// area is a registered range as the model knows it.
type area struct {
	addr            core.DevAddr
	n               uint64
	host            core.HostAddr
	phase           phase
	refs            int
	unmaps, munmaps int // that failed
	users           int // held transfers and requests inside; sequential model only
}

// holds says whether addr points at a byte of it.
func (a *area) holds(addr core.DevAddr) bool {
	return addr >= a.addr && uint64(addr-a.addr) < a.n
}

// takeDown is what the kernel will say to UNMAP and munmap, and what is left.
func (a *area) takeDown() answer {
	if startsAt(a.addr, pageLateUnmap) && a.unmaps == 0 {
		a.unmaps++
		a.phase = live
		return noUnmap()
	}
	if startsAt(a.addr, pageLateMunmap) && a.munmaps == 0 {
		a.munmaps++
		a.phase = stuck
		return noMunmap()
	}
	a.phase, a.refs = gone, 0
	return answer{}
}

// model is a library, one call at a time: each method predicts one.
type model struct {
	devices [core.Devices]device
}

type device struct {
	phase phase
	opens int
	areas []*area // disjoint, sorted
}

// ready says why calls on a device fail; success: they do not.
func (m *model) ready(id int) answer {
	switch {
	case id < 0 || id >= core.Devices:
		return badDevice()
	case m.devices[id].phase == draining:
		return closing()
	case m.devices[id].phase != live:
		return notOpen()
	}
	return answer{}
}

func (m *model) open(id int) answer {
	switch a := m.ready(id); a {
	case badDevice():
		return a
	case closing():
		return busy()
	}
	m.devices[id].phase = live
	m.devices[id].opens++
	return answer{}
}

// checkRange is what regmem says about its arguments alone.
func checkRange(addr core.DevAddr, n uint64) answer {
	why := core.Reason(0)
	switch {
	case addr == 0:
		why = core.ReasonNullAddress
	case n == 0 || n%page != 0:
		why = core.ReasonLength
	case addr%page != 0:
		why = core.ReasonAlignment
	case uint64(addr) > math.MaxUint64-n:
		why = core.ReasonRangeOverflow
	default:
		return answer{}
	}
	return answer{syscall.EINVAL, why}
}

// find is the area that starts at addr.
func (d *device) find(addr core.DevAddr) *area {
	for _, a := range d.areas {
		if a.addr == addr {
			return a
		}
	}
	return nil
}

// meets is whether [addr, addr+n) shares a byte with an area.
func (d *device) meets(addr core.DevAddr, n uint64) bool {
	return slices.ContainsFunc(d.areas, func(a *area) bool {
		return addr < a.addr+core.DevAddr(a.n) && a.addr < addr+core.DevAddr(n)
	})
}

// register predicts regmem. fresh is an area whose host address is for the
// caller to fill in, old one that got a reference more, or is about to go.
func (m *model) register(id int, addr core.DevAddr, n uint64) (fresh, old *area, a answer) {
	if id < 0 || id >= core.Devices {
		return nil, nil, badDevice()
	}
	if a := checkRange(addr, n); !a.ok() {
		return nil, nil, a
	}
	if a := m.ready(id); !a.ok() {
		return nil, nil, a
	}
	d := &m.devices[id]
	if old := d.find(addr); old != nil && old.n == n && old.phase != stuck {
		if old.phase == live {
			old.refs++
		}
		return nil, old, answer{}
	}
	if d.meets(addr, n) {
		return nil, nil, overlap()
	}
	if startsAt(addr, pageNoMap) {
		return nil, nil, noMap()
	}
	return d.add(addr, n), nil, answer{}
}

func (d *device) add(addr core.DevAddr, n uint64) *area {
	a := &area{addr: addr, n: n, phase: live, refs: 1}
	d.areas = append(d.areas, a)
	slices.SortFunc(d.areas, func(a, b *area) int { return int(a.addr) - int(b.addr) })
	return a
}

// deregister predicts deregmem. last is the area to be taken down.
func (m *model) deregister(id int, addr core.DevAddr, n uint64) (last *area, a answer) {
	if a := m.ready(id); !a.ok() {
		return nil, a
	}
	old := m.devices[id].find(addr)
	switch {
	case old == nil || old.phase == draining:
		return nil, unknown()
	case old.n != n:
		return nil, wrongLength()
	case old.refs > 1:
		old.refs--
		return nil, answer{}
	}
	old.phase = draining
	return old, answer{}
}

// finish takes down what deregister began.
func (m *model) finish(id int, a *area) answer {
	said := a.takeDown()
	m.sweep(id)
	return said
}

func (m *model) sweep(id int) {
	d := &m.devices[id]
	d.areas = slices.DeleteFunc(d.areas, func(a *area) bool { return a.phase == gone })
}

// close predicts phxfs_close; last: shut is to follow.
func (m *model) close(id int) (last bool, a answer) {
	switch a := m.ready(id); {
	case a == closing():
		return false, notOpen()
	case !a.ok():
		return false, a
	}
	d := &m.devices[id]
	if d.opens--; d.opens > 0 {
		return false, answer{}
	}
	d.phase = draining
	return true, answer{}
}

// shut ends the last close: every area goes, whatever the kernel says.
func (m *model) shut(id int) (first answer) {
	for _, a := range m.devices[id].areas {
		said := a.takeDown()
		if first.ok() {
			first = said
		}
	}
	m.devices[id] = device{}
	return first
}

// transfer predicts where a transfer of n bytes goes: which area (nil: plain
// memory), or why not.
func (m *model) transfer(id int, buf core.DevAddr, bufOff int64, n uint64) (*area, answer) {
	if a := m.ready(id); !a.ok() {
		return nil, a
	}
	if bufOff < 0 {
		return nil, answer{syscall.EINVAL, core.ReasonBufOffset}
	}
	for _, a := range m.devices[id].areas {
		if !a.holds(buf) {
			continue
		}
		room := a.n - uint64(buf-a.addr)
		if uint64(bufOff) > room || n > room-uint64(bufOff) {
			return nil, outside()
		}
		if a.phase != live {
			return nil, removed()
		}
		return a, answer{}
	}
	return nil, unregistered()
}

// checkTransfer is what a single transfer says about its numbers alone.
func checkTransfer(id int, buf core.DevAddr, bufOff, n, off int64) answer {
	why := core.Reason(0)
	switch {
	case n < 0:
		why = core.ReasonNegativeLength
	case off < 0:
		why = core.ReasonNegativeOffset
	case n > math.MaxInt64-off:
		why = core.ReasonFileRange
	case id < 0 && (bufOff < 0 || uint64(bufOff) > math.MaxUint64-uint64(buf) || uint64(n) > math.MaxUint64-uint64(buf)-uint64(bufOff)):
		why = core.ReasonCPUAddress
	default:
		return answer{}
	}
	return answer{syscall.EINVAL, why}
}
