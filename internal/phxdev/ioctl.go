package phxdev

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The two requests: _IOW(0x88, 1, 56 bytes) and _IOW(0x88, 2, 56 bytes). The
// size is part of the number, so they change with ioParams.
const (
	CmdMap   = 0x40388801
	CmdUnmap = 0x40388802
)

// ioParams is the argument of both requests, byte for byte (docs/abi.md §5).
type ioParams struct {
	devID     uint64 // unused, 0: the descriptor says which device
	hostAddr  uint64 // start of the mapping (c_vaddr)
	hostLen   uint64 // bytes, the whole mapping (c_size)
	devAddr   uint64 // device memory to pin behind it (n_vaddr)
	devLen    uint64 // bytes, equal to hostLen (n_size)
	endAddr   uint64 // unused, 0
	stageSize uint32 // unused, 0 (sbuf_block)
	_         uint32
}

// The layout is the kernel's. Each line stops compiling when a field moves:
// a constant index out of [1]struct{} is an error.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(ioParams{})-56]
	_ = [1]struct{}{}[unsafe.Offsetof(ioParams{}.devID)-0]
	_ = [1]struct{}{}[unsafe.Offsetof(ioParams{}.hostAddr)-8]
	_ = [1]struct{}{}[unsafe.Offsetof(ioParams{}.hostLen)-16]
	_ = [1]struct{}{}[unsafe.Offsetof(ioParams{}.devAddr)-24]
	_ = [1]struct{}{}[unsafe.Offsetof(ioParams{}.devLen)-32]
	_ = [1]struct{}{}[unsafe.Offsetof(ioParams{}.endAddr)-40]
	_ = [1]struct{}{}[unsafe.Offsetof(ioParams{}.stageSize)-48]
	_ = [1]struct{}{}[unsafe.Sizeof(uintptr(0))-8] // LP64 only
	_ = [1]struct{}{}[(1<<30|unsafe.Sizeof(ioParams{})<<16|0x88<<8|1)-CmdMap]
	_ = [1]struct{}{}[(1<<30|unsafe.Sizeof(ioParams{})<<16|0x88<<8|2)-CmdUnmap]
)

func newParams(host uintptr, dev, n uint64) ioParams {
	return ioParams{hostAddr: uint64(host), hostLen: n, devAddr: dev, devLen: n}
}

// Map pins n bytes of device memory at dev behind the mapping at host, which
// Mmap returned for the same n and on which Map was never called before. After
// an error nothing is pinned and the mapping must go (Munmap), not be used for
// another attempt. Errors are the module's: EINVAL or EFAULT (not memory of
// this device), EBUSY, ENOMEM, EINTR (see the package comment).
func (d *Device) Map(host uintptr, dev, n uint64) error {
	p := newParams(host, dev, n)
	if errno := ioctl(d.fd, CmdMap, &p); errno != 0 {
		return fmt.Errorf("ioctl MAP %d bytes of device memory at %#x on phxfs device %d: %w", n, dev, d.index, errno)
	}
	return nil
}

// Unmap drops the pin of a mapping, exactly once for each Map that succeeded
// and only while the device memory is alive. I/O on the mapping must be over.
// The pages stay mapped until Munmap.
func (d *Device) Unmap(host uintptr, dev, n uint64) error {
	p := newParams(host, dev, n)
	if errno := again(func() syscall.Errno { return ioctl(d.fd, CmdUnmap, &p) }); errno != 0 {
		return fmt.Errorf("ioctl UNMAP %d bytes of device memory at %#x on phxfs device %d: %w", n, dev, d.index, errno)
	}
	return nil
}

// ioctl makes one call, never a second one. It may block in the driver.
func ioctl(fd int, cmd uintptr, p *ioParams) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), cmd, uintptr(unsafe.Pointer(p)))
	return errno
}
