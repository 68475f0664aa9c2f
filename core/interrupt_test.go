package core

import (
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/connectors"
)

// interruptible is whether a handler may interrupt the calling thread.
func interruptible(t *testing.T) bool {
	var mask unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, nil, &mask); err != nil {
		t.Error(err)
	}
	return mask.Val[0]&(1<<(unix.SIGUSR1-1)) == 0
}

// A handler that calls exit must find a pin noted, or not there: no signal comes
// between MAP and its note, nor between the taking of the note and UNMAP,
// whichever call is at it and however it ends.
func TestNoSignalComesBetweenAPinAndItsNote(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	id, maps, unmaps, asked := uint64(1), 0, 0, 0
	var r *rig
	r = newRig(t, withConnector(livingVendor{identity: func(DevAddr, uint64) (uint64, connectors.LifeState) {
		if reg := r.find(0, page); reg != nil && reg.pin.State == PinUnmapped {
			asked++
			if interruptible(t) {
				t.Error("a signal can come between the note taken and UNMAP")
			}
		}
		return id, connectors.LifeKnown
	}}))
	outcome := error(nil)
	r.nodes.onMap = func(DevAddr) error {
		if maps++; interruptible(t) {
			t.Error("a signal can come at MAP")
		}
		return outcome
	}
	r.nodes.onUnmap = func(DevAddr) error {
		if unmaps++; interruptible(t) {
			t.Error("a signal can come at UNMAP")
		}
		return outcome
	}
	step := func(what string, call func() error, fails bool) {
		t.Helper()
		if err := call(); (err != nil) != fails {
			t.Errorf("%s: %v", what, err)
		}
		if !interruptible(t) {
			t.Errorf("after %s no signal comes any more", what)
		}
	}
	register := func() error { _, err := r.Register(0, page, page); return err }
	deregister := func() error { return r.Deregister(0, page, page) }

	r.open(0)
	outcome = syscall.ENOMEM
	step("a MAP that fails", register, true)
	outcome = nil
	step("regmem", register, false)
	id = 2
	step("regmem of other memory at the address", register, false)
	step("deregmem", deregister, false)
	outcome = syscall.EFAULT
	step("an UNMAP that fails", deregister, true)
	outcome = nil
	step("the last deregmem", deregister, false)
	step("regmem", register, false)
	step("close", func() error { return r.Close(0) }, false)
	if maps != 4 || unmaps != 3 || asked != 4 {
		t.Errorf("%d MAPs, %d UNMAPs, %d questions before one; want 4, 3, 4", maps, unmaps, asked)
	}
}
