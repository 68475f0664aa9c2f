package nvidia

import (
	"os"
	"runtime"
	"testing"

	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
)

func TestStreamLivesInThePrimaryContext(t *testing.T) {
	text, err := os.ReadFile("../../test/c/fake_cuda.c")
	if err != nil {
		t.Fatal(err)
	}
	library := dltest.Build(t, t.TempDir(), "libcuda-memory.so", string(text), "-std=c11", "-pthread")
	c := New(Config{Library: library})
	if err := c.StageDevice(1); err != nil {
		t.Fatal(err)
	}
	lib, err := dl.OpenLoaded(library)
	if err != nil {
		t.Fatal(err)
	}
	contexts, err := lib.Symbol("fake_contexts")
	if err != nil {
		t.Fatal(err)
	}
	if n := contexts.CallI(1); n != 0 {
		t.Fatalf("%d contexts before the first stream", n)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := c.OpenStream(1)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := contexts.CallI(0), contexts.CallI(1); a != 0 || b != 1 {
		t.Errorf("contexts: %d and %d, want one of device 1", a, b)
	}
	s.Close()
	if n := contexts.CallI(1); n != 0 {
		t.Errorf("%d contexts after Close", n)
	}
}
