package host

import (
	"fmt"
	"syscall"
	"unsafe"

	"libphoenix/connectors"
)

// CopyToDevice copies lenBytes from src to dst, both in this process, and
// returns when they are there. Both ranges must be mapped, as for memcpy;
// overlapping ones are copied as if through a third place.
func (c Connector) CopyToDevice(ordinal int, dst connectors.DevAddr, src uintptr, lenBytes uint64) error {
	return c.copyBytes(ordinal, uintptr(dst), src, lenBytes)
}

// CopyToHost is CopyToDevice the other way round.
func (c Connector) CopyToHost(ordinal int, dst uintptr, src connectors.DevAddr, lenBytes uint64) error {
	return c.copyBytes(ordinal, dst, uintptr(src), lenBytes)
}

func (c Connector) copyBytes(ordinal int, dst, src uintptr, lenBytes uint64) error {
	if _, err := c.FindDevice(ordinal); err != nil {
		return err
	}
	if lenBytes == 0 {
		return nil
	}
	if dst == 0 || src == 0 || lenBytes > 1<<63-1 || dst+uintptr(lenBytes) < dst || src+uintptr(lenBytes) < src {
		return fmt.Errorf("copy %d bytes from %#x to %#x: %w", lenBytes, src, dst, syscall.EINVAL)
	}
	copy(bytesAt(dst, lenBytes), bytesAt(src, lenBytes))
	return nil
}

// bytesAt is n bytes of the caller's memory as a slice that lives for one
// copy. The memory is outside the Go heap and stays mapped during the call;
// the detour through &addr is how the integer becomes a pointer without the
// compiler taking it for pointer arithmetic.
func bytesAt(addr uintptr, n uint64) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}
