package amd

import (
	"os"
	"path/filepath"
	stdruntime "runtime"
	"syscall"
	"testing"
	"unsafe"

	"libphoenix/connectors"
	"libphoenix/connectors/connectorstest"
	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
)

// Before ROCm 6 the number of device memory was another: such a runtime stages
// nothing.
func TestMemoryOfAnOlderRuntimeIsRefused(t *testing.T) {
	folder, err := filepath.Abs("../../test/c")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(folder + "/fake_hip.c")
	if err != nil {
		t.Fatal(err)
	}
	library := dltest.Build(t, t.TempDir(), "libhip-5.so", string(text), "-std=c11", "-pthread", "-I"+folder)
	c := New(Config{Libraries: []string{library}})
	if err := c.StageDevice(0); err != nil {
		t.Fatal(err)
	}
	lib, err := dl.OpenLoaded(library)
	if err != nil {
		t.Fatal(err)
	}
	var device, allocate dl.Func
	if err := lib.Bind(dl.Sym{Name: "hipSetDevice", Into: &device}, dl.Sym{Name: "cuMemAlloc_v2", Into: &allocate}); err != nil {
		t.Fatal(err)
	}
	var address uintptr
	stdruntime.LockOSThread() // which has the device
	defer stdruntime.UnlockOSThread()
	if code := device.CallI(0) + allocate.CallPWU(unsafe.Pointer(&address), 4096, 0); code != 0 {
		t.Fatalf("device memory: code %d", code)
	}
	if err := c.CheckMemory(0, connectors.DevAddr(address), 4096); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAKE_HIP_ROCM5", "1")
	connectorstest.Want(t, c.CheckMemory(0, connectors.DevAddr(address), 4096), syscall.EFAULT, "type 1")
}
