package emulator

import (
	"errors"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Layouts of linux/seccomp.h, kernel 5.9. The stage checks their sizes against
// the running kernel's.
type (
	notification struct {
		id    uint64
		tid   uint32 // thread that made the call; 0: not visible from here
		flags uint32
		nr    int32
		arch  uint32
		ip    uint64
		args  [6]uint64
	}
	response struct {
		id    uint64
		val   int64
		errno int32 // negative
		flags uint32
	}
	addfd struct {
		id       uint64
		flags    uint32
		srcfd    uint32
		newfd    uint32
		newflags uint32
	}
)

// Requests on a listener; the unsigned ones of x/sys have no names for all.
const (
	ioctlIDValid  = 0x40082102
	ioctlAddFD    = 0x40182103
	ioctlSetFlags = 0x40082104
)

// listener is the supervisor's end of the filter. The descriptor is its own.
// Its methods may be called from any goroutine; none waits but recv.
type listener struct {
	fd      int
	twoStep atomic.Bool // the kernel (5.9 to 5.13) cannot add a descriptor and answer at once
}

// receive returns the next notification, or nil if there is none after all:
// the thread died, or a signal took its call back. err: the listener is of no
// use any more.
func (l *listener) receive() (*notification, error) {
	n := new(notification)
	switch errno := l.recv(n); errno {
	case 0:
		return n, nil
	case unix.EINTR, unix.ENOENT, unix.EAGAIN:
		return nil, nil
	default:
		return nil, errno
	}
}

// reply ends a call with a value or, if errno is not 0, with that error. It is
// true if the thread got the answer, false if it does not wait any more.
func (l *listener) reply(id uint64, val int64, errno syscall.Errno) bool {
	return l.send(&response{id: id, val: val, errno: -int32(errno)}) == 0
}

// proceed lets the kernel run the call as it stands; see reply.
func (l *listener) proceed(id uint64) bool {
	return l.send(&response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}) == 0
}

// waits is whether the call still waits for its answer. What was read through
// the thread's id before that is the thread's own, not of one that has since
// got the same id.
func (l *listener) waits(id uint64) bool { return l.valid(&id) == 0 }

// install ends a call with a new descriptor, which refers to the same open
// file as the borrowed fd.
func (l *listener) install(id uint64, fd int, closeOnExec bool) (int, syscall.Errno) {
	a := addfd{id: id, srcfd: uint32(fd)}
	if closeOnExec {
		a.newflags = unix.O_CLOEXEC
	}
	if !l.twoStep.Load() {
		a.flags = unix.SECCOMP_ADDFD_FLAG_SEND
		got, errno := l.add(&a)
		if errno != unix.EINVAL {
			return got, errno
		}
		l.twoStep.Store(true)
		a.flags = 0
	}
	got, errno := l.add(&a)
	if errno == 0 && !l.reply(id, int64(got), 0) {
		errno = unix.ENOENT
	}
	return got, errno
}

// replace puts the open file of the borrowed fd at number at in the thread's
// descriptor table. The call waits on.
func (l *listener) replace(id uint64, at, fd int, closeOnExec bool) syscall.Errno {
	a := addfd{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, srcfd: uint32(fd), newfd: uint32(at)}
	if closeOnExec {
		a.newflags = unix.O_CLOEXEC
	}
	_, errno := l.add(&a)
	return errno
}

// probe checks that the kernel can add descriptors: of a notification that
// does not exist it says ENOENT then, and EINVAL before 5.9.
func (l *listener) probe() error {
	_, errno := l.add(&addfd{id: ^uint64(0), srcfd: uint32(l.fd)})
	if errors.Is(errno, unix.ENOENT) {
		return nil
	}
	return errno
}
