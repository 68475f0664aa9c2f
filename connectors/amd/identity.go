package amd

/*
#cgo CFLAGS: -std=gnu11
#cgo LDFLAGS: -ldl
#include "identity.h"

// By value, so that Go hands out no pointer and allocates nothing.
typedef struct {
	uint64_t id;
	int state;
} phx_answer;

static phx_answer phx_ask(uint64_t addr, uint64_t len) {
	phx_answer a = {0, 0};
	a.state = phx_amd_identity(addr, len, &a.id);
	return a;
}
*/
import "C"

import (
	"unsafe"

	"libphoenix/connectors"
)

// The states of the C header are connectors.LifeState: an index out of
// [1]struct{} does not compile.
var (
	_ = [1]struct{}{}[C.PHX_LIFE_KNOWN-connectors.LifeKnown]
	_ = [1]struct{}{}[C.PHX_LIFE_GONE-connectors.LifeGone]
	_ = [1]struct{}{}[C.PHX_LIFE_UNASKED-connectors.LifeUnasked]
)

// Identity makes one value of the HIP buffer ids in the range (pieces.h). It
// loads no library, allocates nothing and may be called from any thread.
func (c *Connector) Identity(addr connectors.DevAddr, lenBytes uint64) (uint64, connectors.LifeState) {
	a := C.phx_ask(C.uint64_t(addr), C.uint64_t(lenBytes))
	return uint64(a.id), connectors.LifeState(a.state)
}

// IdentityFunc is the address of phx_amd_identity (identity.h).
func (c *Connector) IdentityFunc() uintptr {
	return uintptr(unsafe.Pointer(C.phx_amd_identity))
}
