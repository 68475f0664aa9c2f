package nvidia

/*
#cgo CFLAGS: -std=gnu11
#define _GNU_SOURCE
#include "identity.h"
*/
import "C"

import (
	"unsafe"

	"libphoenix/connectors/life"
)

// newLife asks phx_nvidia_identity (identity.h).
func newLife() life.Asker { return life.New(unsafe.Pointer(C.phx_nvidia_identity)) }
