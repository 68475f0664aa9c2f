package amd

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

// newLife asks phx_amd_identity (identity.h).
func newLife() life.Asker { return life.New(unsafe.Pointer(C.phx_amd_identity)) }
