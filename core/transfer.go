package core

import (
	"math"
	"syscall"

	"libphoenix/engine"
)

// maxChunk is the most that one system call is asked to move, in bytes
// (docs/abi.md); the kernel itself stops at 2 GiB - 4 KiB.
const maxChunk = 1 << 30

// Transfer is one read or write of n bytes between fd at file offset off and
// memory at buf+bufOff: of device id, or of this process if id < 0. It returns
// the bytes moved: fewer than n at the end of a file, or when an error came
// after progress. It is neither queued nor ordered against batches.
//
// Errors, in the order of the checks: ClassArgument EINVAL (n or off negative,
// off+n overflows; CPU buffer: bufOff negative or address overflow);
// ClassDevice EINVAL bad id, ENODEV not open, ESHUTDOWN closing, EINVAL bufOff
// negative, EFAULT outside a registration or one that is being removed;
// ReasonKernel with the kernel's errno. n == 0 is then 0 whatever fd is.
func (l *Library) Transfer(k engine.Kind, fd, id int32, buf DevAddr, bufOff, n, off int64) (int64, error) {
	if bad := CheckTransfer(id, buf, bufOff, n, off); bad != nil {
		return 0, bad
	}
	if id < 0 {
		host := HostAddr(buf) + HostAddr(bufOff)
		moved, errno := l.move(k, fd, host, uint64(n), off)
		if moved == n {
			return moved, nil
		}
		return l.fellShort(Event{Call: transferCalls[k], Device: -1, Addr: uint64(host), Len: uint64(n), Offset: off, FD: fd}, moved, errno)
	}
	r, host, bad := l.enter(id, buf, bufOff, uint64(n))
	if bad != nil {
		return 0, bad
	}
	defer r.gate().Leave()
	var moved int64
	var errno syscall.Errno
	if l.reach() == reachStaged {
		moved, errno = l.moveStaged(k, fd, host, uint64(n), off, r.group())
	} else {
		moved, errno = l.move(k, fd, host, uint64(n), off)
	}
	if moved == n {
		return moved, nil
	}
	return l.fellShort(Event{Call: transferCalls[k], Device: id, Addr: uint64(buf) + uint64(bufOff), Len: uint64(n), Offset: off, FD: fd}, moved, errno)
}

// CheckTransfer is the first part of Transfer, its ClassArgument errors.
func CheckTransfer(id int32, buf DevAddr, bufOff, n, off int64) *Error {
	switch {
	case n < 0:
		return errNegativeLength
	case off < 0:
		return errNegativeOffset
	case n > math.MaxInt64-off:
		return errFileRange
	}
	if id < 0 {
		if _, ok := cpuExtent(buf, bufOff, uint64(n)); !ok {
			return errCPUAddress
		}
	}
	return nil
}

// move loops until n bytes are moved, the file ends (errno 0), or the kernel
// refuses.
func (l *Library) move(k engine.Kind, fd int32, addr HostAddr, n uint64, off int64) (moved int64, errno syscall.Errno) {
	for uint64(moved) < n {
		chunk := min(n-uint64(moved), maxChunk)
		var got int64
		if k == engine.Read {
			got, errno = l.io.Pread(fd, addr+HostAddr(moved), chunk, off+moved)
		} else {
			got, errno = l.io.Pwrite(fd, addr+HostAddr(moved), chunk, off+moved)
		}
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0 || got == 0:
			return moved, errno
		}
		moved += got
	}
	return moved, 0
}

// fellShort is the answer to a transfer that did not move everything: progress
// wins over a later error. e describes the transfer.
func (l *Library) fellShort(e Event, moved int64, errno syscall.Errno) (int64, error) {
	if moved == 0 && errno != 0 {
		return 0, l.errs.of(errno, ReasonKernel)
	}
	if l.logs(LevelDebug) {
		l.log.Event(Short(e, moved, errno))
	}
	return moved, nil
}
