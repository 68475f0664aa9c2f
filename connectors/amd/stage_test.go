package amd

import (
	"os"
	"path/filepath"
	stdruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"libphoenix/connectors"
	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
)

// standIn is the stand-in of the C tests, which knows memory.
func standIn(t *testing.T, edit func(string) string) string {
	t.Helper()
	folder, err := filepath.Abs("../../test/c")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(folder + "/fake_hip.c")
	if err != nil {
		t.Fatal(err)
	}
	return dltest.Build(t, t.TempDir(), "libhip-memory.so", edit(string(text)), "-std=c11", "-pthread", "-I"+folder)
}

func as(text string) string { return text }

func TestStagingNeedsItsFunctions(t *testing.T) {
	library := standIn(t, func(s string) string { return strings.ReplaceAll(s, "hipHostMalloc", "hipNoSuchFunction") })
	c := New(Config{Libraries: []string{library}})
	want(t, c.StageDevice(0), syscall.ENODEV, "HIP device 0", "no function hipHostMalloc")
	_, err := c.OpenStream(0)
	want(t, err, syscall.ENODEV, "no function hipHostMalloc")
	want(t, c.CheckMemory(0, 1<<20, 1), syscall.ENODEV, "no function hipHostMalloc")
	want(t, New(Config{Libraries: []string{library + ".none"}}).StageDevice(0), syscall.ENODEV, "cannot load")
}

func TestStagingOfARuntimeThatDoesNotStart(t *testing.T) {
	library := standIn(t, as)
	c := New(Config{Libraries: []string{library}})
	t.Setenv("FAKE_HIP_INIT", "100")
	want(t, c.StageDevice(0), syscall.ENODEV, "hipInit", "100")
	_, err := c.OpenStream(0)
	want(t, err, syscall.ENODEV, "hipInit", "100")
	os.Unsetenv("FAKE_HIP_INIT")
	if err := c.StageDevice(1); err != nil {
		t.Fatalf("once it starts: %v", err)
	}
	want(t, c.StageDevice(2), syscall.ENODEV, "HIP device 2", "2 devices")
	want(t, c.StageDevice(-1), syscall.ENODEV, "2 devices")
}

func TestCopiesAreCheckedBeforeTheRuntimeSeesThem(t *testing.T) {
	library := standIn(t, as)
	c := New(Config{Libraries: []string{library}})
	stdruntime.LockOSThread()
	defer stdruntime.UnlockOSThread()
	s, err := c.OpenStream(1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	host, err := s.Alloc(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free(host, 1<<20)
	lib, err := dl.OpenLoaded(library)
	if err != nil {
		t.Fatal(err)
	}
	alloc, err := lib.Symbol("cuMemAlloc_v2")
	if err != nil {
		t.Fatal(err)
	}
	free, err := lib.Symbol("cuMemFree_v2")
	if err != nil {
		t.Fatal(err)
	}
	var address uint64
	if code := alloc.CallPWU(unsafe.Pointer(&address), 5<<20, 0); code != 0 {
		t.Fatalf("device memory: code %d", code)
	}
	dev := connectors.DevAddr(address)
	if err := c.CheckMemory(1, dev, 5<<20); err != nil {
		t.Errorf("all of it: %v", err)
	}
	want(t, c.CheckMemory(1, dev, 5<<20+1), syscall.EFAULT, "no HIP memory")
	want(t, c.CheckMemory(1, dev-1, 2), syscall.EFAULT, "no HIP memory")
	want(t, c.CheckMemory(0, dev, 1), syscall.EFAULT, "HIP device 1, not device memory of 0")
	want(t, c.CheckMemory(1, connectors.DevAddr(host), 4096), syscall.EFAULT, "type 1")
	for _, toDevice := range []bool{true, false} {
		if err := s.Copy(toDevice, dev+4<<20, host, 1<<20); err != nil {
			t.Errorf("to device %v: %v", toDevice, err)
		}
		want(t, s.Copy(toDevice, dev+4<<20+1, host, 1<<20), syscall.EFAULT, "no HIP memory")
	}
	for n := uint64(0); n < 2; {
		if n, err = s.Finished(true); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("FAKE_HIP_ROCM5", "1")
	want(t, c.CheckMemory(1, dev, 1), syscall.EFAULT, "type 1")
	os.Unsetenv("FAKE_HIP_ROCM5")
	if code := free.CallW(uintptr(address)); code != 0 {
		t.Fatalf("free: code %d", code)
	}
	want(t, s.Copy(true, dev, host, 4096), syscall.EFAULT, "no HIP memory")
	want(t, s.Copy(false, dev, host, 4096), syscall.EFAULT, "no HIP memory")
}

func TestNoPinnedMemoryIsENOMEM(t *testing.T) {
	t.Setenv("FAKE_CUDA_HOST_LIMIT", "1")
	c := New(Config{Libraries: []string{standIn(t, as)}})
	stdruntime.LockOSThread()
	defer stdruntime.UnlockOSThread()
	s, err := c.OpenStream(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Alloc(4096)
	want(t, err, syscall.ENOMEM, "hipHostMalloc")
}
