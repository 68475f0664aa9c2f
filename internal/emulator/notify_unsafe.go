package emulator

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var (
	_ = [1]struct{}{}[unsafe.Sizeof(notification{})-80]
	_ = [1]struct{}{}[unsafe.Sizeof(response{})-24]
	_ = [1]struct{}{}[unsafe.Sizeof(addfd{})-24]
)

func ioctl(fd int, request uintptr, arg unsafe.Pointer) (int, syscall.Errno) {
	r, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	return int(r), errno
}

// ioctlAgain is for requests that a signal, the Go runtime's own among them,
// ends with EINTR before they have done anything.
func ioctlAgain(fd int, request uintptr, arg unsafe.Pointer) (int, syscall.Errno) {
	for {
		if r, errno := ioctl(fd, request, arg); errno != unix.EINTR {
			return r, errno
		}
	}
}

func (l *listener) recv(n *notification) syscall.Errno {
	_, errno := ioctl(l.fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n))
	return errno
}

func (l *listener) send(r *response) syscall.Errno {
	_, errno := ioctlAgain(l.fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(r))
	return errno
}

func (l *listener) valid(id *uint64) syscall.Errno {
	_, errno := ioctlAgain(l.fd, ioctlIDValid, unsafe.Pointer(id))
	return errno
}

func (l *listener) add(a *addfd) (int, syscall.Errno) {
	return ioctlAgain(l.fd, ioctlAddFD, unsafe.Pointer(a))
}

// wakeHere asks the kernel (6.6) to wake the supervisor on the caller's CPU,
// which makes a round trip shorter. Older kernels refuse; nothing is lost.
func (l *listener) wakeHere() {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), ioctlSetFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}

// newListener filters the calling thread and those it makes, for good, and
// returns the descriptor on which its notifications arrive. With killable
// (Linux 5.19, else EINVAL) a signal does not take a call back that the
// supervisor has seen; without it the call is made again.
func newListener(program []unix.SockFilter, killable bool) (int, syscall.Errno) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if killable {
		flags |= unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	return int(fd), errno
}

// actionAvailable is 0 if the kernel knows the action of a filter.
func actionAvailable(action uint32) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno
}

// notifySizes are the sizes of the kernel's notification, response and
// seccomp_data.
func notifySizes() (sizes [3]uint16, errno syscall.Errno) {
	_, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes)))
	return sizes, errno
}

// resetSignal gives a signal its default effect in this process, whatever Go's
// runtime has made of it.
func resetSignal(sig syscall.Signal) {
	var action [4]uint64 // struct sigaction of the kernel, SIG_DFL
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}
