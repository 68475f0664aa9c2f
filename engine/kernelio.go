package engine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// kernelIO is the IO of a real engine. The calls can block, so they go through
// Syscall6, which lets other goroutines have the processor meanwhile. Memory
// is an integer: the collector has no part in it.
type kernelIO struct{}

// Kernel is the IO that goes to the kernel.
func Kernel() IO { return kernelIO{} }

func (kernelIO) Pread(fd int32, addr HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	r, _, e := unix.Syscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(addr), uintptr(n), uintptr(off), 0, 0)
	return int64(r), e
}

func (kernelIO) Pwrite(fd int32, addr HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	r, _, e := unix.Syscall6(unix.SYS_PWRITE64, uintptr(fd), uintptr(addr), uintptr(n), uintptr(off), 0, 0)
	return int64(r), e
}

// chunkBytes is the most one system call is asked to move (docs/abi.md).
const chunkBytes = 1 << 30

// transfer moves n bytes with as many calls as that takes. It returns the
// bytes moved, fewer than n at the end of the file or when an error came after
// progress, or -errno. With n == 0 it does not look at fd.
func transfer(io IO, k Kind, fd int32, addr HostAddr, n uint64, off int64) int64 {
	moved := uint64(0)
	for moved < n {
		chunk := min(n-moved, chunkBytes)
		var r int64
		var e syscall.Errno
		if k == Read {
			r, e = io.Pread(fd, addr+HostAddr(moved), chunk, off+int64(moved))
		} else {
			r, e = io.Pwrite(fd, addr+HostAddr(moved), chunk, off+int64(moved))
		}
		switch {
		case e == syscall.EINTR:
		case e != 0 && moved == 0:
			return -int64(e)
		case e != 0 || r <= 0:
			return int64(moved)
		default:
			moved += uint64(r)
		}
	}
	return int64(moved)
}
