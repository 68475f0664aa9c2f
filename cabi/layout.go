package main

// #include "bridge.h"
import "C"

import (
	"unsafe"

	"libphoenix/core"
	"libphoenix/core/gate"
	"libphoenix/engine"
)

// Compile-time proof that C and Go mean the same memory: each line assigns an
// array of one length to an array of the other.
type (
	request = core.Request
	creq    = C.phxfs_io_req_t
	pin     = core.Pin
)

var (
	_ [48]struct{}                                 = [unsafe.Sizeof(request{})]struct{}{}
	_ [unsafe.Sizeof(creq{})]struct{}              = [unsafe.Sizeof(request{})]struct{}{}
	_ [unsafe.Offsetof(creq{}.fd)]struct{}         = [unsafe.Offsetof(request{}.FD)]struct{}{}
	_ [unsafe.Offsetof(creq{}.device_id)]struct{}  = [unsafe.Offsetof(request{}.Device)]struct{}{}
	_ [unsafe.Offsetof(creq{}.buf)]struct{}        = [unsafe.Offsetof(request{}.Buf)]struct{}{}
	_ [unsafe.Offsetof(creq{}.buf_offset)]struct{} = [unsafe.Offsetof(request{}.BufOffset)]struct{}{}
	_ [unsafe.Offsetof(creq{}.nbytes)]struct{}     = [unsafe.Offsetof(request{}.Len)]struct{}{}
	_ [unsafe.Offsetof(creq{}.f_offset)]struct{}   = [unsafe.Offsetof(request{}.Offset)]struct{}{}
	_ [unsafe.Offsetof(creq{}.result)]struct{}     = [unsafe.Offsetof(request{}.Result)]struct{}{}

	_ [C.PHX_PIN_SIZE]struct{}     = [unsafe.Sizeof(pin{})]struct{}{}
	_ [C.PHX_PIN_GATE]struct{}     = [unsafe.Offsetof(pin{}.Gate)]struct{}{}
	_ [C.PHX_PIN_STATE]struct{}    = [unsafe.Offsetof(pin{}.State)]struct{}{}
	_ [C.PHX_PIN_PID]struct{}      = [unsafe.Offsetof(pin{}.PID)]struct{}{}
	_ [C.PHX_PIN_FD]struct{}       = [unsafe.Offsetof(pin{}.FD)]struct{}{}
	_ [C.PHX_PIN_DEVICE]struct{}   = [unsafe.Offsetof(pin{}.Device)]struct{}{}
	_ [C.PHX_PIN_LIFE]struct{}     = [unsafe.Offsetof(pin{}.Life)]struct{}{}
	_ [C.PHX_PIN_ADDR]struct{}     = [unsafe.Offsetof(pin{}.Addr)]struct{}{}
	_ [C.PHX_PIN_HOST]struct{}     = [unsafe.Offsetof(pin{}.Host)]struct{}{}
	_ [C.PHX_PIN_LEN]struct{}      = [unsafe.Offsetof(pin{}.Len)]struct{}{}
	_ [C.PHX_PIN_IDENTITY]struct{} = [unsafe.Offsetof(pin{}.Identity)]struct{}{}

	_ [C.PHX_RING_FDS * 4]struct{} = [unsafe.Sizeof(engine.RingFDs{})]struct{}{}

	_ [C.PHX_MODE_FULL]struct{}         = [core.ModeFull]struct{}{}
	_ [C.PHX_MODE_HOST_STAGING]struct{} = [core.ModeHostStaging]struct{}{}
	_ [C.PHX_MODE_AUTO]struct{}         = [core.ModeAuto]struct{}{}

	_ [C.PHX_GATE_CLOSED >> 16]struct{} = [gate.ClosedBit >> 16]struct{}{}
)
