package core

import (
	"fmt"
	"syscall"
	"testing"

	"libphoenix/engine"
)

func TestFindDeviceCachesSuccessesOnly(t *testing.T) {
	asked := 0
	answer, fails := 0, error(nil)
	r := newRig(t, withConnector(vendor{find: func(int) (int, error) { asked++; return answer, fails }}))
	fails = fmt.Errorf("no module: %w", syscall.ENODEV)
	for range 2 {
		_, err := r.FindDevice(3)
		wantError(t, "FindDevice", err, syscall.ENODEV, ReasonFindDevice)
	}
	answer, fails = 5, nil
	for range 3 {
		if got, err := r.FindDevice(3); got != 5 || err != nil {
			t.Fatalf("FindDevice = %d, %v", got, err)
		}
		answer = 6 // must not be seen
	}
	if asked != 3 {
		t.Fatalf("the connector was asked %d times, want 3: failures again, the success once", asked)
	}
	if got, err := r.FindDevice(1000); got != 6 || err != nil { // beyond the cache
		t.Fatalf("FindDevice(1000) = %d, %v", got, err)
	}
}

func TestFindDeviceRefusesNonsense(t *testing.T) {
	answer := 8
	r := newRig(t, withConnector(vendor{find: func(int) (int, error) { return answer, nil }}))
	_, err := r.FindDevice(-1)
	wantError(t, "FindDevice(-1)", err, syscall.EINVAL, ReasonFindDevice)
	for _, answer = range []int{8, -1} {
		_, err = r.FindDevice(0)
		wantError(t, "an index outside 0..7", err, syscall.ENODEV, ReasonFindDevice)
	}
}

func TestPageSizeIsTheConnectors(t *testing.T) {
	if got := newRig(t).PageSize(); got != 65536 {
		t.Fatalf("PageSize %d", got)
	}
}

func TestEngineIsMadeOnceAtTheFirstCallThatNeedsIt(t *testing.T) {
	made := 0
	r := newRig(t, withEngine(func(e engine.Engine) engine.Engine { made++; return e }))
	r.open(0)
	r.register(0, page, page)
	if _, err := r.Submit(engine.Read, nil); err != nil {
		t.Fatal(err)
	}
	if made != 0 || r.AsyncInFlight() != 0 {
		t.Fatal("engine made by a call that needs none")
	}
	if got := r.EngineName(); got != "sync" || made != 1 {
		t.Fatalf("EngineName %q, made %d", got, made)
	}
	_, _ = r.Run(engine.Read, make([]Request, 2))
	if made != 1 {
		t.Fatalf("made %d engines", made)
	}
	h := Handle(1)
	_ = r.Destroy(h | 1<<26) // the empty batch's
}
