package core

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

func TestEveryReasonHasATextAndAClass(t *testing.T) {
	seen := map[string]Reason{}
	for why := Reason(1); why < reasonEnd; why++ {
		text := why.String()
		if other, twice := seen[text]; twice || text == "unknown reason" {
			t.Errorf("reason %d: text %q, also of %d", why, text, other)
		}
		seen[text] = why
		if c := why.Class(); c < ClassArgument || c > ClassKernel {
			t.Errorf("reason %d: class %d", why, c)
		}
	}
	if Reason(0).String() != "unknown reason" || reasonEnd.String() != "unknown reason" {
		t.Error("no reason has a text")
	}
}

func TestErrnoComesThroughWrapping(t *testing.T) {
	for _, c := range []struct {
		err  error
		want syscall.Errno
	}{
		{syscall.ENOMEM, syscall.ENOMEM},
		{fmt.Errorf("map: %w", fmt.Errorf("deeper: %w", syscall.EBUSY)), syscall.EBUSY},
		{errors.New("no errno"), syscall.EIO},
		{syscall.Errno(0), syscall.EIO},
	} {
		if got := errnoOf(c.err); got != c.want {
			t.Errorf("errnoOf(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}

func TestErrorTableHoldsEachPair(t *testing.T) {
	table := new(errorTable)
	table.fill()
	for why := firstVarying; why <= ReasonKernel; why++ {
		for errno := syscall.Errno(1); errno < 140; errno++ {
			if e := table.of(errno, why); e.Errno != errno || e.Why != why {
				t.Fatalf("of(%d, %d) = %+v", errno, why, e)
			}
		}
	}
	if e := table.of(syscall.EPERM, ReasonBadDevice); e.Why != ReasonBadDevice {
		t.Fatalf("a reason outside the table: %+v", e)
	}
}
