package host

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapsBuf is what one read of /proc/self/maps fetches, in bytes. The kernel
// gives whole lines up to a page at a time, but nothing here depends on it.
const mapsBuf = 4096

// checkRange reads /proc/self/maps through buf until the range is settled.
// The file is opened anew each time: an open one keeps showing the process
// that opened it, which is the wrong one after fork.
func checkRange(addr, lenBytes uint64, buf []byte) error {
	if lenBytes == 0 {
		return nil
	}
	if addr+lenBytes < addr {
		return fmt.Errorf("check %d bytes at %#x: the range wraps around: %w", lenBytes, addr, syscall.EFAULT)
	}
	fd, errno := openMaps()
	if errno != 0 {
		return unreadable(addr, lenBytes, "open", errno)
	}
	defer unix.Close(fd)

	s := scan{want: addr, end: addr + lenBytes}
	for s.verdict == undecided {
		n, errno := readMaps(fd, buf)
		if errno != 0 {
			return unreadable(addr, lenBytes, "read", errno)
		}
		if n == 0 {
			s.verdict = hole // the last mapping lies below the range
			break
		}
		s.feed(buf[:n])
	}
	switch s.verdict {
	case covered:
		return nil
	case readOnly:
		return fmt.Errorf("check %d bytes at %#x: not writable at %#x: %w", lenBytes, addr, s.want, syscall.EFAULT)
	default:
		return fmt.Errorf("check %d bytes at %#x: nothing mapped at %#x: %w", lenBytes, addr, s.want, syscall.EFAULT)
	}
}

// openMaps opens without the copy of the path that unix.Open allocates.
func openMaps() (int, syscall.Errno) {
	const path = "/proc/self/maps\x00"
	at := unix.AT_FDCWD
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(unsafe.StringData(path))),
			unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
		if errno != unix.EINTR {
			return int(fd), errno
		}
	}
}

// readMaps reads the next piece; unlike unix.Read it keeps buf on the stack in
// builds with the race detector too.
func readMaps(fd int, buf []byte) (int, syscall.Errno) {
	for {
		n, _, errno := unix.Syscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// unreadable reports that the memory could not be looked at: the errno is that
// of the failed step (EMFILE: no descriptor is left for it).
func unreadable(addr, lenBytes uint64, step string, cause syscall.Errno) error {
	return fmt.Errorf("check %d bytes at %#x: %s /proc/self/maps: %w", lenBytes, addr, step, cause)
}
