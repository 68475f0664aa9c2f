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

// Take implements core.Ledger.
func (l *ledger) Take() *core.Pin {
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

// Pinned implements core.Ledger.
func (l *ledger) Pinned() { C.phx_exit_arm_pins() }
