// Package life makes connectors.Liveness of a connector's C function.
package life

/*
#cgo CFLAGS: -std=gnu11 -D_GNU_SOURCE
#cgo LDFLAGS: -ldl
#include "life.h"

// By value, so that Go hands out no pointer and allocates nothing.
typedef struct {
	uint64_t id;
	int state;
} phx_answer;

static phx_answer phx_ask(uintptr_t f, uint64_t addr, uint64_t len) {
	phx_answer a = {0, 0};
	a.state = ((int (*)(uint64_t, uint64_t, uint64_t *))f)(addr, len, &a.id);
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

// Asker is a connectors.Liveness, for a connector to embed.
type Asker struct{ f uintptr }

// New takes the address of the C function that IdentityFunc is to return.
func New(f unsafe.Pointer) Asker { return Asker{uintptr(f)} }

// Identity makes one value of the vendor's ids in the range (pieces.h). It
// loads no library, allocates nothing and may be called from any thread.
func (a Asker) Identity(addr connectors.DevAddr, lenBytes uint64) (uint64, connectors.LifeState) {
	got := C.phx_ask(C.uintptr_t(a.f), C.uint64_t(addr), C.uint64_t(lenBytes))
	return uint64(got.id), connectors.LifeState(got.state)
}

// IdentityFunc implements connectors.Liveness.
func (a Asker) IdentityFunc() uintptr { return a.f }
