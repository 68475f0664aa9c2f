package emulator

import (
	"errors"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Layouts of linux/seccomp.h, kernel 5.14. The stage checks their sizes against
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
	fd       int
	killable bool // only death takes a call back that was received (Linux 5.19)
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
// file as the borrowed fd. If it fails the thread has got none.
func (l *listener) install(id uint64, fd int, closeOnExec bool) (int, syscall.Errno) {
	a := addfd{id: id, srcfd: uint32(fd)}
	if closeOnExec {
		a.newflags = unix.O_CLOEXEC
	}
	if l.killable {
		// Nothing comes between the two steps, and each can be made again.
		got, errno := l.add(&a)
		if errno == 0 && !l.reply(id, int64(got), 0) {
			errno = unix.ESRCH
		}
		return got, errno
	}
	// A signal may take the call back between two steps: it is one. When the
	// supervisor is interrupted in it, the kernel has noted the answer and drops
	// the descriptor: open would return 0. So it is not interrupted.
	a.flags = unix.SECCOMP_ADDFD_FLAG_SEND
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var every, before unix.Sigset_t
	for i := range every.Val {
		every.Val[i] = ^every.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &every, &before); err != nil {
		return -1, errnoOf(err)
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) }()
	return l.add(&a)
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

// probe checks that the kernel can add descriptors and answer at once: of a
// notification that does not exist it says ENOENT then, and EINVAL before 5.14.
func (l *listener) probe() error {
	_, errno := l.add(&addfd{id: ^uint64(0), srcfd: uint32(l.fd), flags: unix.SECCOMP_ADDFD_FLAG_SEND})
	if errors.Is(errno, unix.ENOENT) {
		return nil
	}
	return errno
}
