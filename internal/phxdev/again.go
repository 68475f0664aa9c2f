package phxdev

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Interruptions is how often in a row a call is tried that answers EINTR.
const Interruptions = 1000

// again makes a call that does nothing when it answers EINTR until it answers
// something else.
func again(call func() syscall.Errno) (errno syscall.Errno) {
	for range Interruptions {
		if errno = call(); errno != unix.EINTR {
			return errno
		}
	}
	return errno
}
