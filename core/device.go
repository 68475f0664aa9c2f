package core

import "sync"

// Devices is how many devices there are: indices 0..7.
const Devices = 8

// device is one phxfs device of this process.
type device struct {
	id int32 // set by New, then read-only

	// mu keeps: ranges are sorted and disjoint; a registration is in ranges
	// from its reservation to its end; node is set in deviceOpen and
	// deviceClosing. Readers: resolve, without any wait or system call inside.
	mu      sync.RWMutex
	changed sync.Cond // on mu: state, calls or the state of a registration changed
	state   deviceState
	opens   int // phxfs_open calls not yet matched by phxfs_close
	calls   int // regmem and deregmem calls inside; only while it is 0 may the last close take the registrations down
	node    Node
	ranges  rangeTable
}

// deviceState: closed → opening → open → closing → closed.
type deviceState uint8

const (
	deviceClosed  deviceState = iota
	deviceOpening             // the first open waits for open(2)
	deviceOpen
	deviceClosing // the last close waits for I/O and takes registrations down
)

// stateError is why the device cannot be used now; nil: it can.
func (d *device) stateErrorLocked() *Error {
	switch d.state {
	case deviceOpen:
		return nil
	case deviceClosing:
		return errClosing
	default:
		return errNotOpen
	}
}

// device finds the device of an id as the caller gave it.
func (l *Library) device(id int) (*device, *Error) {
	if id < 0 || id >= Devices {
		return nil, errBadDevice
	}
	return &l.devices[id], nil
}

// begin counts a regmem or deregmem in; end counts it out.
func (d *device) begin() *Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.stateErrorLocked(); err != nil {
		return err
	}
	d.calls++
	return nil
}

func (d *device) end() {
	d.mu.Lock()
	d.calls--
	if d.calls == 0 {
		d.changed.Broadcast()
	}
	d.mu.Unlock()
}
