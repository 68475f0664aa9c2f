package connectorstest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/connectors"
	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
)

// Staging is how a vendor's host staging is tested.
type Staging struct {
	// Source is a file of test/c that stands in for the first library: two
	// devices, with memory that only copies reach. "": device memory is memory
	// of this process, and there are eight devices.
	Source string
	Alloc  string // the function that allocates pinned memory
}

// folder is test/c, seen from a connector's own.
const folder = "../../test/c"

// install compiles the stand-in, with its text edited.
func (v Vendor) installMemory(t *testing.T, edit func(string) string) (libraries, file string) {
	t.Helper()
	libraries = t.TempDir()
	if v.Staging.Source == "" {
		return libraries, ""
	}
	text, err := os.ReadFile(filepath.Join(folder, v.Staging.Source))
	if err != nil {
		t.Fatal(err)
	}
	include, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	name := v.Libraries[0].Name
	return libraries, dltest.Build(t, libraries, name, edit(string(text)), "-std=c11", "-pthread", "-I"+include)
}

func asItIs(text string) string { return text }

func (v Vendor) stager(libraries string, t *testing.T) connectors.Stager {
	return v.New(libraries, t.TempDir()).(connectors.Stager)
}

func (v Vendor) staging(t *testing.T) {
	libraries, file := v.installMemory(t, asItIs)
	t.Run("devices", func(t *testing.T) { v.stagedDevices(t, libraries) })
	t.Run("memory_and_copies", func(t *testing.T) { v.memoryAndCopies(t, libraries, file) })
	if file == "" {
		return
	}
	t.Run("no_pinned_memory", func(t *testing.T) { v.noPinnedMemory(t, libraries) })
	t.Run("function_missing", v.functionMissing)
	_, err := v.stager(t.TempDir(), t).OpenStream(0)
	Want(t, err, syscall.ENODEV, "cannot load", v.Libraries[0].Name)
}

// stagedDevices: nothing is made on them, and there are no others.
func (v Vendor) stagedDevices(t *testing.T, libraries string) {
	c, devices := v.stager(libraries, t), 2
	if v.Staging.Source == "" {
		devices = 8
	}
	for ordinal := range devices {
		if err := c.StageDevice(ordinal); err != nil {
			t.Error(err)
		}
	}
	Want(t, c.StageDevice(devices), syscall.ENODEV, "device")
	_, err := c.OpenStream(devices)
	Want(t, err, syscall.ENODEV, "device")
}

// memoryAndCopies takes memory of device 1 through its life.
func (v Vendor) memoryAndCopies(t *testing.T, libraries, file string) {
	const n = 5 << 20
	c := v.stager(libraries, t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := c.OpenStream(1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	host, err := s.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free(host, n)
	dev, free := deviceMemory(t, file, n)

	if err := c.CheckMemory(1, dev, n); err != nil {
		t.Errorf("all of it: %v", err)
	}
	if err := c.CheckMemory(1, dev+n-1, 1); err != nil {
		t.Errorf("the last byte: %v", err)
	}
	Want(t, c.CheckMemory(1, dev, n+1<<30), syscall.EFAULT)
	Want(t, c.CheckMemory(1, 16, 1), syscall.EFAULT)
	if file != "" {
		Want(t, c.CheckMemory(1, dev, n+1), syscall.EFAULT)
		Want(t, c.CheckMemory(1, dev-1, 2), syscall.EFAULT)
		Want(t, c.CheckMemory(0, dev, 1), syscall.EFAULT, "device 1, not device memory of 0")
		Want(t, c.CheckMemory(1, connectors.DevAddr(host), 1), syscall.EFAULT, "not device memory")
	}

	bytes := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&host))), n)
	for i := range bytes {
		bytes[i] = byte(i * 7 >> 3)
	}
	begun := uint64(0)
	move := func(toDevice bool, at, lenBytes uint64) {
		t.Helper()
		if err := s.Copy(toDevice, dev+connectors.DevAddr(at), host+uintptr(at), lenBytes); err != nil {
			t.Fatalf("copy to device %v: %v", toDevice, err)
		}
		begun++
	}
	finish := func() {
		t.Helper()
		for over := uint64(0); over < begun; {
			if over, err = s.Finished(true); err != nil {
				t.Fatal(err)
			}
		}
	}
	for at := uint64(0); at < n; at += 1 << 20 {
		move(true, at, 1<<20)
	}
	finish()
	clear(bytes)
	move(false, 0, n-3)
	finish()
	for i := range bytes {
		want := byte(i * 7 >> 3)
		if i >= n-3 {
			want = 0
		}
		if bytes[i] != want {
			t.Fatalf("byte %d came back as %d, want %d", i, bytes[i], want)
		}
	}
	free()
	for _, toDevice := range []bool{true, false} {
		Want(t, s.Copy(toDevice, dev, host, 4096), syscall.EFAULT)
	}
	Want(t, c.CheckMemory(1, dev, 1), syscall.EFAULT)
}

// deviceMemory is n bytes of the device that is current on this thread.
func deviceMemory(t *testing.T, file string, n uintptr) (dev connectors.DevAddr, free func()) {
	t.Helper()
	if file == "" {
		mem, err := unix.MmapPtr(-1, 0, nil, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		// The addresses stay taken: nothing else is to be found there.
		return connectors.DevAddr(uintptr(mem)), func() {
			if _, err := unix.MmapPtr(-1, 0, mem, n, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED); err != nil {
				t.Fatal(err)
			}
		}
	}
	lib, err := dl.OpenLoaded(file)
	if err != nil {
		t.Fatal(err)
	}
	var allocate, release dl.Func
	if err := lib.Bind(dl.Sym{Name: "cuMemAlloc_v2", Into: &allocate}, dl.Sym{Name: "cuMemFree_v2", Into: &release}); err != nil {
		t.Fatal(err)
	}
	var address uintptr
	if code := allocate.CallPWU(unsafe.Pointer(&address), n, 0); code != 0 {
		t.Fatalf("device memory: code %d", code)
	}
	return connectors.DevAddr(address), func() {
		if code := release.CallW(address); code != 0 {
			t.Fatalf("freeing it: code %d", code)
		}
	}
}

func (v Vendor) noPinnedMemory(t *testing.T, libraries string) {
	t.Setenv("FAKE_CUDA_HOST_LIMIT", "1")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := v.stager(libraries, t).OpenStream(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Alloc(4096)
	Want(t, err, syscall.ENOMEM, v.Staging.Alloc)
}

func (v Vendor) functionMissing(t *testing.T) {
	libraries, _ := v.installMemory(t, func(text string) string {
		return strings.ReplaceAll(text, v.Staging.Alloc, "noSuchFunction")
	})
	c := v.stager(libraries, t)
	says := "no function " + v.Staging.Alloc
	Want(t, c.StageDevice(0), syscall.ENODEV, "device 0", says)
	Want(t, c.CheckMemory(0, 1<<20, 1), syscall.ENODEV, says)
	_, err := c.OpenStream(0)
	Want(t, err, syscall.ENODEV, says)
}
