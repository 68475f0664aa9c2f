package phxdev

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// NodePrefix is the name of a device node without its index.
const NodePrefix = "phxfs_dev"

// MaxDevices is how many devices the kernel module can offer: indices 0..7.
const MaxDevices = 8

// Device is one open device node. The descriptor belongs to it alone.
type Device struct {
	fd    int // set by Open; -1 after Close
	index int // set by Open, then read-only
}

// Open opens dir/phxfs_dev<index> for reading and writing; a program started
// by exec does not inherit the descriptor. index is 0..7, else EINVAL; other
// errors are open(2)'s (ENOENT: no such device or the module is not loaded,
// EACCES: not allowed to use it).
func Open(dir string, index int) (*Device, error) {
	if index < 0 || index >= MaxDevices {
		return nil, fmt.Errorf("open phxfs device %d of 0..%d: %w", index, MaxDevices-1, unix.EINVAL)
	}
	path := filepath.Join(dir, NodePrefix+strconv.Itoa(index))
	var fd int
	errno := again(func() (e syscall.Errno) {
		var err error
		fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		errors.As(err, &e)
		return e
	})
	if errno != 0 {
		return nil, fmt.Errorf("open %s: %w", path, errno)
	}
	fd, err := aboveStandard(fd)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &Device{fd: fd, index: index}, nil
}

// aboveStandard takes fd and returns it, or a copy above the numbers of
// standard input, output and error: a program that has closed those (a daemon)
// will put something else there, or print into it.
func aboveStandard(fd int) (int, error) {
	if fd > 2 {
		return fd, nil
	}
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	_ = unix.Close(fd) // just opened, nothing written: there is nothing to learn
	return high, err
}

// FD is the descriptor, borrowed from the Device; -1 after Close.
func (d *Device) FD() int { return d.fd }

// Mmap reserves n bytes of address space for a registration and returns where
// they start. The memory must not be touched before Map succeeded on it. The
// caller owns the mapping and returns it with Munmap. n is a multiple of the
// vendor's page size; errors are mmap(2)'s.
func (d *Device) Mmap(n uint64) (uintptr, error) {
	// MAP_SHARED matters: through a private mapping reads would land in
	// copies of the pages and never reach the device.
	var host uintptr
	errno := again(func() (e syscall.Errno) {
		host, _, e = unix.Syscall6(unix.SYS_MMAP, 0, uintptr(n),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED, uintptr(d.fd), 0)
		return e
	})
	if errno != 0 {
		return 0, fmt.Errorf("mmap %d bytes of phxfs device %d: %w", n, d.index, errno)
	}
	return host, nil
}

// Munmap returns the n bytes at host, a whole mapping made by Mmap. Unmap came
// first if Map had succeeded. Errors are munmap(2)'s; the mapping is then
// still there.
func Munmap(host uintptr, n uint64) error {
	errno := again(func() syscall.Errno {
		_, _, e := unix.Syscall(unix.SYS_MUNMAP, host, uintptr(n), 0)
		return e
	})
	if errno != 0 {
		return fmt.Errorf("munmap %d bytes at %#x: %w", n, host, errno)
	}
	return nil
}

// Close closes the descriptor. It releases no registration: pins and mappings
// outlive it, and nothing can drop a pin any more. EBADF: closed before.
func (d *Device) Close() error {
	fd := d.fd
	if fd < 0 {
		return fmt.Errorf("close phxfs device %d: %w", d.index, unix.EBADF)
	}
	d.fd = -1
	if err := unix.Close(fd); err != nil && err != unix.EINTR {
		return fmt.Errorf("close phxfs device %d: %w", d.index, err)
	}
	return nil
}
