package core

import (
	"sync/atomic"
	"syscall"
)

// ordinals remembers the answers of the connector that were successes, as
// index+1. Failures are asked again: the kernel module may be loaded later.
type ordinals [64]atomic.Int32

// FindDevice is the phxfs index 0..7 of the device that the vendor numbers
// ordinal in this process.
//
// Errors, ClassDevice: EINVAL negative ordinal; ENODEV or the connector's
// errno: there is none.
func (l *Library) FindDevice(ordinal int) (int, error) {
	if ordinal < 0 {
		return 0, l.errs.of(syscall.EINVAL, ReasonFindDevice)
	}
	if ordinal < len(l.found) {
		if known := l.found[ordinal].Load(); known != 0 {
			return int(known) - 1, nil
		}
	}
	index, err := l.findDevice(ordinal)
	if err != nil {
		return 0, l.detailed(l.errs.of(errnoOf(err), ReasonFindDevice), err)
	}
	if index < 0 || index >= Devices {
		return 0, l.errs.of(syscall.ENODEV, ReasonFindDevice)
	}
	if ordinal < len(l.found) {
		l.found[ordinal].Store(int32(index) + 1)
	}
	return index, nil
}
