package engine_test

import (
	"testing"

	"libphoenix/engine"
	"libphoenix/internal/uring/uringtest"
)

func TestRingDescriptorsAreNotedWhileRingsAreOpen(t *testing.T) {
	var fds engine.RingFDs
	held := func() (n int) {
		for _, fd := range fds {
			if fd != 0 {
				n++
			}
		}
		return n
	}
	k := uringtest.New(through(kernel{}))
	e, err := engine.NewUring(engine.Config{Rings: k, RingFDs: &fds})
	if err != nil {
		t.Fatal(err)
	}
	if held() != 1 || k.Rings() != 1 {
		t.Errorf("%d descriptors noted, want the 1 of the first ring (of %d)", held(), k.Rings())
	}
	e.Close()
	if held() != 0 {
		t.Errorf("%d descriptors noted after Close, want 0: %v", held(), fds)
	}
}
