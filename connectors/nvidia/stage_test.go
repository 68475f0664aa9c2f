package nvidia

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"libphoenix/connectors"
	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
)

// standIn is the stand-in of the C tests, which knows memory and contexts.
func standIn(t *testing.T, edit func(string) string) string {
	t.Helper()
	text, err := os.ReadFile("../../test/c/fake_cuda.c")
	if err != nil {
		t.Fatal(err)
	}
	return dltest.Build(t, t.TempDir(), "libcuda-memory.so", edit(string(text)), "-std=c11", "-pthread")
}

func as(text string) string { return text }

// call is a function of the stand-in.
func call(t *testing.T, library, name string) dl.Func {
	t.Helper()
	lib, err := dl.OpenLoaded(library)
	if err != nil {
		t.Fatal(err)
	}
	f, err := lib.Symbol(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestStagingNeedsItsFunctions(t *testing.T) {
	library := standIn(t, func(s string) string { return strings.ReplaceAll(s, "cuMemHostAlloc", "cuNoSuchFunction") })
	c := New(Config{Library: library})
	want(t, c.StageDevice(0), syscall.ENODEV, "CUDA device 0", "no function cuMemHostAlloc")
	_, err := c.OpenStream(0)
	want(t, err, syscall.ENODEV, "no function cuMemHostAlloc")
	want(t, c.CheckMemory(0, 1<<20, 1), syscall.ENODEV, "no function cuMemHostAlloc")
	want(t, New(Config{Library: library + ".none"}).StageDevice(0), syscall.ENODEV, "cannot load")
}

func TestStreamLivesInThePrimaryContext(t *testing.T) {
	library := standIn(t, as)
	c := New(Config{Library: library})
	for ordinal := range 2 {
		if err := c.StageDevice(ordinal); err != nil {
			t.Fatal(err)
		}
	}
	want(t, c.StageDevice(2), syscall.ENODEV, "2 devices")
	want(t, c.StageDevice(-1), syscall.ENODEV, "2 devices")
	contexts := call(t, library, "fake_contexts")
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
	host, err := s.Alloc(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Copy(true, 1<<20, host, 100)
	want(t, err, syscall.EFAULT, "cuMemcpyHtoDAsync", "code 1")
	want(t, c.CheckMemory(1, connectors.DevAddr(host), 1<<16), syscall.EFAULT, "type 1")
	s.Free(host, 1<<16)
	s.Close()
	if n := contexts.CallI(1); n != 0 {
		t.Errorf("%d contexts after Close", n)
	}
}

func TestNoPinnedMemoryIsENOMEM(t *testing.T) {
	t.Setenv("FAKE_CUDA_HOST_LIMIT", "1")
	c := New(Config{Library: standIn(t, as)})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := c.OpenStream(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Alloc(4096)
	want(t, err, syscall.ENOMEM, "cuMemHostAlloc")
}
