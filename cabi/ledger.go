package main

// #include "bridge.h"
import "C"

import (
	"sync"
	"unsafe"

	"libphoenix/core"
)

// ledger hands out the pins of the C table of live registrations (live.h),
// where the exit handler finds them without Go.
type ledger struct {
	state *C.struct_phx_state // set by newLedger, then read-only

	mu   sync.Mutex
	free []*core.Pin // protected by mu; every pin that no registration holds
}

func newLedger(s *C.struct_phx_state) *ledger { return &ledger{state: s} }

// heritage is what a forked child finds in the table, nothing in any other
// process. Pins that stand for nothing become free; those that the parent was
// taking down stay as they are, for good.
func (l *ledger) heritage() (h core.Heritage) {
	for i := range h.Opens {
		h.Opens[i] = int(C.phx_opens(l.state, C.int(i)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; ; i++ {
		chunk := C.phx_pins_chunk(l.state, C.int(i))
		if chunk == nil {
			return h
		}
		pins := unsafe.Slice((*core.Pin)(chunk), C.PHX_PINS_PER_CHUNK)
		for k := range pins {
			switch p := &pins[k]; p.State {
			case core.PinFree:
				*p = core.Pin{}
				l.free = append(l.free, p)
			case core.PinMapped, core.PinEmbedded:
				h.Pins = append(h.Pins, p)
			}
		}
	}
}

// Take implements core.Ledger.
func (l *ledger) Take() *core.Pin {
	inject(C.PHX_IN_TAKE)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) == 0 && !l.growLocked() {
		return nil
	}
	p := l.free[len(l.free)-1]
	l.free = l.free[:len(l.free)-1]
	return p
}

func (l *ledger) growLocked() bool {
	chunk := C.phx_pins_grow(l.state)
	if chunk == nil {
		return false
	}
	pins := unsafe.Slice((*core.Pin)(chunk), C.PHX_PINS_PER_CHUNK)
	for i := len(pins) - 1; i >= 0; i-- { // the first pin is taken first
		l.free = append(l.free, &pins[i])
	}
	return true
}

// Give implements core.Ledger.
func (l *ledger) Give(p *core.Pin) {
	*p = core.Pin{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, p)
}

// Opened implements core.Ledger.
func (l *ledger) Opened(device, opens int) {
	C.phx_set_opens(l.state, C.int(device), C.int32_t(opens))
}

// Pinned implements core.Ledger.
func (l *ledger) Pinned() { C.phx_exit_arm_pins() }
