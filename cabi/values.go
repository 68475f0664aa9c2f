package main

// #include "bridge.h"
import "C"

import (
	"errors"
	"syscall"

	"libphoenix/core"
)

// The one place where a failure becomes what C sees: the value of each call
// (docs/abi.md) and errno.

// The failures of a NULL that the C half let through.
var (
	errNullTarget   = &core.Error{Errno: syscall.EINVAL, Why: core.ReasonNullTarget}
	errNullRequests = &core.Error{Errno: syscall.EINVAL, Why: core.ReasonNullRequests}
)

// classify takes an error apart. One without an errno is our bug: EIO.
func classify(err error) (core.Class, syscall.Errno) {
	if e, ok := errors.AsType[*core.Error](err); ok && e.Errno != 0 {
		return e.Why.Class(), e.Errno
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errno != 0 {
		return core.ClassKernel, errno
	}
	return core.ClassKernel, syscall.EIO
}

// minusOne: close, find_dev, deregmem.
func minusOne(err error) (rc, eno C.int) {
	_, errno := classify(err)
	return -1, C.int(errno)
}

// openValue: -EBUSY (to be retried) while a last close drains, else -1.
func openValue(err error) (rc, eno C.int) {
	if e, ok := errors.AsType[*core.Error](err); ok && e.Why == core.ReasonClosing {
		return -C.int(e.Errno), C.int(e.Errno)
	}
	return minusOne(err)
}

// regmemValue: -EFAULT where mmap or MAP failed, -ENOMEM, else -EINVAL.
func regmemValue(err error) (rc, eno C.int) {
	class, errno := classify(err)
	switch class {
	case core.ClassMap:
		return -C.int(syscall.EFAULT), C.int(errno)
	case core.ClassMemory:
		return -C.int(syscall.ENOMEM), C.int(errno)
	case core.ClassKernel: // no reason of core's: our bug
		return -C.int(errno), C.int(errno)
	default:
		return -C.int(syscall.EINVAL), C.int(errno)
	}
}

// transferValue: -EINVAL for arguments, -errno of the kernel, -1 for devices
// and registrations.
func transferValue(err error) (rc C.int64_t, eno C.int) {
	class, errno := classify(err)
	if class == core.ClassDevice {
		return -1, C.int(errno)
	}
	return -C.int64_t(errno), C.int(errno)
}

// minusErrno: get_map_mode, the batch calls.
func minusErrno(err error) (rc, eno C.int) {
	_, errno := classify(err)
	return -C.int(errno), C.int(errno)
}
