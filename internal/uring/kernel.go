package uring

import (
	"syscall"
	"unsafe"

	sys "github.com/iceber/iouring-go/syscall"
	"golang.org/x/sys/unix"
)

// Kernel is the system calls under a Ring. Errno 0 is success.
type Kernel interface {
	// Setup makes a ring and returns its fd, which is close-on-exec.
	Setup(entries uint32, p *Params) (fd int, errno syscall.Errno)
	// Enter submits and waits; fd may be a registered index (flags).
	Enter(fd int, submit, minComplete, flags uint32) (submitted int, errno syscall.Errno)
	// Register is io_uring_register(2).
	Register(fd int, op uint32, arg unsafe.Pointer, n uint32) (int, syscall.Errno)
	// Map maps part of a ring, shared with the kernel and absent in children.
	Map(fd int, off int64, lenBytes int) ([]byte, syscall.Errno)
	Unmap(m []byte)
	Close(fd int)
}

// Linux is the real Kernel.
type Linux struct{}

// Setup implements Kernel. It may sleep for memory, so it is no raw call.
func (Linux) Setup(entries uint32, p *Params) (int, syscall.Errno) {
	fd, _, errno := unix.Syscall(sys.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(p)), 0)
	if errno == 0 && fd <= 2 {
		// A host without standard descriptors may open its own there later.
		low := fd
		fd, _, errno = unix.Syscall(unix.SYS_FCNTL, low, unix.F_DUPFD_CLOEXEC, 3)
		_, _, _ = unix.Syscall(unix.SYS_CLOSE, low, 0, 0)
	}
	return int(fd), errno
}

// Enter implements Kernel.
func (Linux) Enter(fd int, submit, minComplete, flags uint32) (int, syscall.Errno) {
	n, _, errno := unix.Syscall6(sys.SYS_IO_URING_ENTER, uintptr(fd), uintptr(submit), uintptr(minComplete), uintptr(flags), 0, 0)
	return int(n), errno
}

// Register implements Kernel. EINTR may be a signal's, or for ever.
func (Linux) Register(fd int, op uint32, arg unsafe.Pointer, n uint32) (int, syscall.Errno) {
	for tries := 1000; ; tries-- {
		r, _, errno := unix.Syscall6(sys.SYS_IO_URING_REGISTER, uintptr(fd), uintptr(op), uintptr(arg), uintptr(n), 0, 0)
		if errno != syscall.EINTR || tries == 0 {
			return int(r), errno
		}
	}
}

// Map implements Kernel. A forked child must not share a ring with its parent,
// so a mapping that cannot be kept from it is an error.
func (Linux) Map(fd int, off int64, lenBytes int) ([]byte, syscall.Errno) {
	m, err := unix.Mmap(fd, off, lenBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, errnoOf(err)
	}
	if err := unix.Madvise(m, unix.MADV_DONTFORK); err != nil {
		_ = unix.Munmap(m)
		return nil, errnoOf(err)
	}
	return m, 0
}

// Unmap implements Kernel. It cannot fail for a mapping of Map.
func (Linux) Unmap(m []byte) { _ = unix.Munmap(m) }

// Close implements Kernel.
func (Linux) Close(fd int) { _ = unix.Close(fd) }

func errnoOf(err error) syscall.Errno {
	if errno, ok := err.(syscall.Errno); ok {
		return errno
	}
	return syscall.EIO
}
