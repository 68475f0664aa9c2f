package core

import (
	"libphoenix/connectors"
	"libphoenix/engine"
)

// DevAddr and HostAddr are the two address types of the library; only
// resolve.go turns the first into the second.
type (
	DevAddr  = connectors.DevAddr
	HostAddr = engine.HostAddr
)

// Request is phxfs_io_req_t, byte for byte (docs/abi.md §1); cabi proves the
// layout at compile time. It lies in the caller's memory: fields are read
// once, at the call, and afterwards only Result is written.
type Request struct {
	FD        int32
	Device    int32   // < 0: Buf is plain process memory
	Buf       DevAddr // device address inside a registration, or a CPU address
	BufOffset int64   // bytes added to Buf
	Len       uint64  // bytes
	Offset    int64   // file offset, bytes
	Result    int64   // bytes moved, or -errno
}
