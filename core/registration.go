package core

import (
	"libphoenix/core/gate"
	"libphoenix/engine"
)

// registration is one registered range of device memory. It is an entry of
// Library.regs: its slot, and with it its Pin, is used again for a later range
// once nobody holds the gate.
type registration struct {
	slot uint32 // set by the slab, then read-only
	pin  *Pin   // taken from the ledger at the slot's first use, then read-only

	// Set by reserve, then read-only until the slot is given back. Readers
	// hold the device's mu or the gate.
	dev      *device
	addr     DevAddr
	lenBytes uint64
	borrowed bool // a parent's (adopt.go): nothing is due for it here

	// Set under dev.mu when the gate opens, then read-only; readers as above.
	host HostAddr

	// Protected by dev.mu.
	links
	state regState
	refs  uint32 // regmem calls not yet matched by a deregmem
}

// regState says who may do what with a registration. Its range is taken in
// all of them; its gate is open in regLive only.
type regState uint8

const (
	regFree     regState = iota // not in a table
	regReserved                 // regmem maps it
	regLive                     // usable
	regDraining                 // the last deregmem, or close, takes it down
	regStuck                    // munmap failed: only munmap is due
)

// group is the Op.Group of its transfers: never 0, and no other's while the
// gate is held.
func (r *registration) group() uint32 { return r.slot + 1 }

func (r *registration) gate() *gate.Gate { return &r.pin.Gate }

// holds says whether addr points at a byte of the range.
func (r *registration) holds(addr DevAddr) bool {
	return addr >= r.addr && uint64(addr-r.addr) < r.lenBytes
}

// takeRegistration returns an unused registration whose gate is closed; nil:
// memory is out.
func (l *Library) takeRegistration() *registration {
	r := l.regs.take()
	if r == nil {
		return nil
	}
	if r.pin == nil {
		if r.pin = l.ledger.Take(); r.pin == nil {
			l.regs.give(r.slot)
			return nil
		}
		r.gate().Close()
	}
	return r
}

// leaveGates undoes what resolve entered for ops: the gate of a registration
// once for each run of consecutive ops of its group.
func (l *Library) leaveGates(ops []engine.Op) {
	held := uint32(0)
	for i := range ops {
		if g := ops[i].Group; g != held {
			if g != 0 {
				l.regs.at(g - 1).gate().Leave()
			}
			held = g
		}
	}
}
