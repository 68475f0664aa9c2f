package main

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"libphoenix/core"
)

// Every class of failure, as each group of calls shows it to C.
func TestValuesOfFailures(t *testing.T) {
	e := func(errno syscall.Errno, why core.Reason) error { return &core.Error{Errno: errno, Why: why} }
	const no = 99 // this call never sees this failure
	for _, c := range []struct {
		name                               string
		err                                error
		errno                              syscall.Errno
		open, one, regmem, transfer, batch int
	}{
		{"bad id", e(syscall.EINVAL, core.ReasonBadDevice), syscall.EINVAL, -1, -1, -22, -1, no},
		{"not open", e(syscall.ENODEV, core.ReasonNotOpen), syscall.ENODEV, no, -1, -22, -1, no},
		{"closing, open", e(syscall.EBUSY, core.ReasonClosing), syscall.EBUSY, -16, no, no, no, no},
		{"closing, I/O", e(syscall.ESHUTDOWN, core.ReasonClosing), syscall.ESHUTDOWN, no, -1, -22, -1, no},
		{"open(2) says EBUSY", e(syscall.EBUSY, core.ReasonOpenNode), syscall.EBUSY, -1, no, no, no, no},
		{"NULL", errNullTarget, syscall.EINVAL, no, no, -22, no, -22},
		{"misaligned", e(syscall.EINVAL, core.ReasonAlignment), syscall.EINVAL, no, no, -22, no, no},
		{"overlap", e(syscall.EINVAL, core.ReasonOverlap), syscall.EINVAL, no, no, -22, no, no},
		{"MAP says EBUSY", e(syscall.EBUSY, core.ReasonMap), syscall.EBUSY, no, no, -14, no, no},
		{"no memory", e(syscall.ENOMEM, core.ReasonNoMemory), syscall.ENOMEM, no, no, -12, no, -12},
		{"unknown range", e(syscall.ENOENT, core.ReasonUnknownRange), syscall.ENOENT, no, -1, no, no, no},
		{"UNMAP fails", e(syscall.EIO, core.ReasonUnmap), syscall.EIO, no, -1, no, no, no},
		{"negative length", e(syscall.EINVAL, core.ReasonNegativeLength), syscall.EINVAL, no, no, no, -22, no},
		{"outside", e(syscall.EFAULT, core.ReasonOutside), syscall.EFAULT, no, no, no, -1, no},
		{"negative buffer offset", e(syscall.EINVAL, core.ReasonBufOffset), syscall.EINVAL, no, no, no, -1, no},
		{"pread says EISDIR", e(syscall.EISDIR, core.ReasonKernel), syscall.EISDIR, no, no, no, -21, no},
		{"full queue", e(syscall.EBUSY, core.ReasonSubmit), syscall.EBUSY, no, no, no, no, -16},
		{"bad handle", e(syscall.EINVAL, core.ReasonBadHandle), syscall.EINVAL, no, no, no, no, -22},
		{"wrapped", fmt.Errorf("doing it: %w", e(syscall.EPERM, core.ReasonOpenNode)), syscall.EPERM, -1, -1, no, no, no},
		{"without an errno", errors.New("our bug"), syscall.EIO, -1, -1, -5, -5, -5},
	} {
		check := func(call string, want, rc, eno int) {
			if want != no && (rc != want || syscall.Errno(eno) != c.errno) {
				t.Errorf("%s, %s: got %d and errno %d, want %d and %d", c.name, call, rc, eno, want, c.errno)
			}
		}
		rc, eno := openValue(c.err)
		check("open", c.open, int(rc), int(eno))
		rc, eno = minusOne(c.err)
		check("close", c.one, int(rc), int(eno))
		rc, eno = regmemValue(c.err)
		check("regmem", c.regmem, int(rc), int(eno))
		n, eno := transferValue(c.err)
		check("read", c.transfer, int(n), int(eno))
		rc, eno = minusErrno(c.err)
		check("batch", c.batch, int(rc), int(eno))
	}
}

func TestPanicBecomesTheContractsFailure(t *testing.T) {
	rc, eno := 0*eio, 0*eio
	func() {
		defer contain("phxfs_open", &rc, -1, &eno)
		var p *int
		*p = 1
	}()
	if rc != -1 || eno != eio {
		t.Errorf("got %d and errno %d, want -1 and EIO", rc, eno)
	}
	rc, eno = 7, 0
	func() {
		defer contain("phxfs_open", &rc, -1, &eno)
	}()
	if rc != 7 || eno != 0 {
		t.Errorf("without a panic: got %d and errno %d, want 7 and 0", rc, eno)
	}
}
