package core

import "libphoenix/core/gate"

// Pin is one live registration as the exit handler and a forked child must see
// it: it lies outside the Go heap (in the product: in the C table of
// cabi/live.h, which mirrors this layout; cabi proves it at compile time).
// A Pin keeps its address for as long as its Ledger lives.
type Pin struct {
	Gate     gate.Gate // users of the registration; the exit handler reads it
	State    uint32    // a PinState; atomic, written last on publication and first on removal
	PID      int32     // the process that made it
	FD       int32     // descriptor of the device, -1 for embedded memory
	Device   int32     // phxfs index
	Life     int32     // connectors.LifeState at MAP
	Refs     uint32    // references of exact duplicates; informative
	_        uint32
	Addr     uint64 // device address
	Host     uint64 // host address (the mapping)
	Len      uint64 // bytes
	Identity uint64 // the vendor's identity of the memory at MAP
}

// PinState says what a Pin still owes the kernel.
type PinState = uint32

const (
	PinFree     PinState = 0
	PinMapped   PinState = 1 // MAP succeeded: UNMAP and munmap are due
	PinUnmapped PinState = 2 // UNMAP is done or must not happen: only munmap is due
	PinEmbedded PinState = 3 // host memory of the caller: nothing is due
)

// Ledger hands out Pins. Its methods may be called from any thread.
type Ledger interface {
	// Take returns a zeroed Pin in state PinFree, or nil when memory is out.
	Take() *Pin
	// Give returns a Pin whose State is PinFree again.
	Give(*Pin)
	// Pinned is told before a MAP, unless the vendor's library is known not to
	// be in the process (idempotent): the exit handler is registered there, so
	// that it runs before the vendor's own. Where there is none, nothing needs
	// to be registered, which can hang in a forked child (cabi/exit.c).
	Pinned()
	// Opened is told how many phxfs_open calls of a device are unmatched,
	// whenever that changes; called with the device's mu held, must not block.
	Opened(device, opens int)
}
