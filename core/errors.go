package core

import (
	"errors"
	"fmt"
	"syscall"
)

// Error is what every call of this package fails with. Errors are shared and
// never change: the failing paths allocate nothing either.
type Error struct {
	Errno syscall.Errno // what errno says after the call
	Why   Reason
}

// Error is the reason and the errno's own words.
func (e *Error) Error() string { return e.Why.String() + ": " + e.Errno.Error() }

// Unwrap gives the errno, for errors.Is.
func (e *Error) Unwrap() error { return e.Errno }

// errnoOf is the errno that an error of another room carries. One without an
// errno is our bug and becomes EIO.
func errnoOf(err error) syscall.Errno {
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errno != 0 {
		return errno
	}
	return syscall.EIO
}

// detailed adds what another room said to an error of the control path, for
// the log. Nobody listening, the error stays as it is and costs nothing.
func (l *Library) detailed(e *Error, cause error) error {
	if !l.logs(LevelError) {
		return e
	}
	return fmt.Errorf("%w: %w", e, cause)
}

// Errors whose errno never varies.
var (
	errNegativeLength = &Error{syscall.EINVAL, ReasonNegativeLength}
	errNegativeOffset = &Error{syscall.EINVAL, ReasonNegativeOffset}
	errFileRange      = &Error{syscall.EINVAL, ReasonFileRange}
	errCPUAddress     = &Error{syscall.EINVAL, ReasonCPUAddress}
	errNullAddress    = &Error{syscall.EINVAL, ReasonNullAddress}
	errLength         = &Error{syscall.EINVAL, ReasonLength}
	errAlignment      = &Error{syscall.EINVAL, ReasonAlignment}
	errRangeOverflow  = &Error{syscall.EINVAL, ReasonRangeOverflow}
	errOverlap        = &Error{syscall.EINVAL, ReasonOverlap}

	errBadDevice     = &Error{syscall.EINVAL, ReasonBadDevice}
	errNotOpen       = &Error{syscall.ENODEV, ReasonNotOpen}
	errClosingOpen   = &Error{syscall.EBUSY, ReasonClosing}
	errClosing       = &Error{syscall.ESHUTDOWN, ReasonClosing}
	errUnregistered  = &Error{syscall.EFAULT, ReasonUnregistered}
	errOutside       = &Error{syscall.EFAULT, ReasonOutside}
	errBufOffset     = &Error{syscall.EINVAL, ReasonBufOffset}
	errRegionClosing = &Error{syscall.EFAULT, ReasonRegionClosing}
	errUnknownRange  = &Error{syscall.ENOENT, ReasonUnknownRange}
	errWrongLength   = &Error{syscall.ENOENT, ReasonWrongLength}

	errNoMemory  = &Error{syscall.ENOMEM, ReasonNoMemory}
	errBadHandle = &Error{syscall.EINVAL, ReasonBadHandle}
)

// Errors whose errno comes from the kernel or from another room are taken from
// a table, so that a caller who fails in a loop costs no memory either.
const (
	firstVarying = ReasonOpenNode
	varying      = int(ReasonKernel-firstVarying) + 1
	errnos       = 134 // linux/errno.h ends at EHWPOISON = 133
)

type errorTable [varying][errnos]Error

func (t *errorTable) fill() {
	for w := range t {
		for e := range t[w] {
			t[w][e] = Error{syscall.Errno(e), firstVarying + Reason(w)}
		}
	}
}

// of is the error for one of the reasons from ReasonOpenNode to ReasonKernel.
// Only an errno that user space should never see (524, ENOTSUPP, leaks from
// some drivers) allocates.
func (t *errorTable) of(errno syscall.Errno, why Reason) *Error {
	if w := int(why) - int(firstVarying); w >= 0 && w < varying && errno < errnos {
		return &t[w][errno]
	}
	return &Error{errno, why}
}
