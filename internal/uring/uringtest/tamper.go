package uringtest

import (
	"syscall"
	"unsafe"

	"libphoenix/internal/uring"
)

// Tamper is a Kernel whose functions, where set, come before those of the
// Kernel below. They may be called from any thread.
type Tamper struct {
	uring.Kernel

	// OnSetup and OnRegister fail the call with an errno that is not 0.
	OnSetup    func(entries, flags uint32) syscall.Errno
	OnRegister func(op uint32) syscall.Errno
	// OnMap fails the mapping at off.
	OnMap func(off int64) syscall.Errno
	// OnEnter says how many of the requests the call may submit; fewer than
	// submit, and it does not wait. With an errno nothing happens but that.
	OnEnter func(submit, minComplete uint32) (uint32, syscall.Errno)
	// AfterEnter changes the errno of a call that was made.
	AfterEnter func(submit, minComplete uint32, errno syscall.Errno) syscall.Errno
}

// Setup implements uring.Kernel.
func (t *Tamper) Setup(entries uint32, p *uring.Params) (int, syscall.Errno) {
	if t.OnSetup != nil {
		if errno := t.OnSetup(entries, p.Flags); errno != 0 {
			return -1, errno
		}
	}
	return t.Kernel.Setup(entries, p)
}

// Register implements uring.Kernel.
func (t *Tamper) Register(fd int, op uint32, arg unsafe.Pointer, n uint32) (int, syscall.Errno) {
	if t.OnRegister != nil {
		if errno := t.OnRegister(op); errno != 0 {
			return -1, errno
		}
	}
	return t.Kernel.Register(fd, op, arg, n)
}

// Map implements uring.Kernel.
func (t *Tamper) Map(fd int, off int64, lenBytes int) ([]byte, syscall.Errno) {
	if t.OnMap != nil {
		if errno := t.OnMap(off); errno != 0 {
			return nil, errno
		}
	}
	return t.Kernel.Map(fd, off, lenBytes)
}

// Enter implements uring.Kernel.
func (t *Tamper) Enter(fd int, submit, minComplete, flags uint32) (int, syscall.Errno) {
	if t.OnEnter != nil {
		most, errno := t.OnEnter(submit, minComplete)
		if errno != 0 {
			return -1, errno
		}
		if most < submit {
			submit, minComplete, flags = most, 0, flags&^uring.EnterGetEvents
		}
	}
	n, errno := t.Kernel.Enter(fd, submit, minComplete, flags)
	if t.AfterEnter != nil {
		if errno = t.AfterEnter(submit, minComplete, errno); errno != 0 {
			n = -1
		}
	}
	return n, errno
}
