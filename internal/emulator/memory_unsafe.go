package emulator

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var _ = [1]struct{}{}[unsafe.Sizeof(procmapQuery{})-104]

func query(fd int, q *procmapQuery) syscall.Errno {
	q.size = uint64(unsafe.Sizeof(*q))
	_, errno := ioctl(fd, procmapIoctl, unsafe.Pointer(q))
	return errno
}

// bytesOf is the memory of a struct without pointers, as long as it lives.
func bytesOf[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// addressOf is where the bytes lie.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// childOf is the process that waitid found: si_pid of siginfo_t, which comes
// after three ints and their padding.
func childOf(info *unix.Siginfo) int {
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), 16)))
}
