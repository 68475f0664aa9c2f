package host

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/connectors"
)

// StageDevice answers nil for 0..7.
func (c Connector) StageDevice(ordinal int) error {
	_, err := c.FindDevice(ordinal)
	return err
}

// CheckMemory is CheckRange: all eight devices have the same memory.
func (c Connector) CheckMemory(ordinal int, addr connectors.DevAddr, lenBytes uint64) error {
	if err := c.StageDevice(ordinal); err != nil {
		return err
	}
	return c.CheckRange(addr, lenBytes)
}

// OpenStream returns a stream whose copies are over when Copy returns. It is
// there so that staging can be used, and tested, where there is no device.
func (c Connector) OpenStream(ordinal int) (connectors.Stream, error) {
	if err := c.StageDevice(ordinal); err != nil {
		return nil, err
	}
	return new(stream), nil
}

// stream counts its copies.
type stream struct{ copies uint64 }

// Alloc implements connectors.Stream.
func (*stream) Alloc(lenBytes uint64) (uintptr, error) {
	mem, err := unix.MmapPtr(-1, 0, nil, uintptr(lenBytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	return uintptr(mem), err
}

// Free implements connectors.Stream. It can only fail for want of kernel
// memory; then address space is lost.
func (*stream) Free(host uintptr, lenBytes uint64) {
	_ = unix.MunmapPtr(*(*unsafe.Pointer)(unsafe.Pointer(&host)), uintptr(lenBytes))
}

// Copy implements connectors.Stream. The kernel copies, as it does for plain
// transfers: device memory that the application has unmapped meanwhile gives
// EFAULT, not a signal.
func (s *stream) Copy(toDevice bool, dev connectors.DevAddr, host uintptr, lenBytes uint64) error {
	trap := uintptr(unix.SYS_PROCESS_VM_READV)
	if toDevice {
		trap = unix.SYS_PROCESS_VM_WRITEV
	}
	for done := uintptr(0); done < uintptr(lenBytes); {
		slot := span{host + done, uintptr(lenBytes) - done}
		memory := span{uintptr(dev) + done, uintptr(lenBytes) - done}
		n, _, errno := unix.Syscall6(trap, uintptr(unix.Getpid()), uintptr(unsafe.Pointer(&slot)), 1, uintptr(unsafe.Pointer(&memory)), 1, 0)
		if errno != 0 {
			return fmt.Errorf("copy %d bytes of host device memory at %#x: %w", lenBytes, dev, errno)
		}
		done += n
	}
	s.copies++
	return nil
}

// span is struct iovec (process_vm_readv(2)) of memory that is not Go's.
type span struct{ addr, lenBytes uintptr }

// Finished implements connectors.Stream.
func (s *stream) Finished(bool) (uint64, error) { return s.copies, nil }

// Close implements connectors.Stream.
func (*stream) Close() {}
