package nvidia

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
)

// cuda is a stand-in driver. CUDA_STANDIN_INIT and CUDA_STANDIN_COUNT change
// what it answers while it is loaded.
const cuda = `
#include <stdlib.h>
#include <stdio.h>
static int number(const char *name, int otherwise) { const char *s = getenv(name); return s ? atoi(s) : otherwise; }
static int ready;
#ifndef NO_INIT
int cuInit(unsigned flags) { int code = flags ? 1 : number("CUDA_STANDIN_INIT", 0); ready = !code; return code; }
#endif
int cuDeviceGetCount(int *n) { if (!ready) return 3; *n = number("CUDA_STANDIN_COUNT", 3); return 0; }
int cuDeviceGet(int *device, int ordinal) { if (ordinal < 0 || ordinal > 2) return 101; *device = 70 + ordinal; return 0; }
int cuDeviceGetPCIBusId(char *text, int len, int device) {
	static const char *const address[] = {"0000:65:00.0", "0000:AF:00.0", "not an address"};
	if (device < 70 || device > 72) return 101;
	return snprintf(text, len, "%s", address[device - 70]) >= len;
}
int cuGetErrorString(int code, const char **text) {
	*text = code == 100 ? "no CUDA-capable device is detected" : code == 3 ? "initialization error" : 0;
	return *text ? 0 : 1;
}
`

// device announces a phxfs device below a sysfs root.
func device(t *testing.T, root, name, address string) {
	t.Helper()
	dir := filepath.Join(root, "class/phxfs-generic", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pci_bdf"), []byte(address+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// want fails unless err carries errno and every part is in its text.
func want(t *testing.T, err error, errno syscall.Errno, parts ...string) {
	t.Helper()
	if !errors.Is(err, errno) {
		t.Fatalf("got %v, want %v", err, errno)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("error %q does not say %q", err, part)
		}
	}
}

func TestOrdinalsBecomeIndicesByPCIAddress(t *testing.T) {
	root := t.TempDir()
	device(t, root, "phxfs_dev5", "0000:65:00.0")
	device(t, root, "phxfs_dev2", "0000:af:00.0")
	c := New(Config{SysfsRoot: root, NVML: "libnvidia-ml-none.so", Library: dltest.Build(t, t.TempDir(), "libcuda-good.so", cuda)})
	for ordinal, index := range []int{5, 2} {
		if got, err := c.FindDevice(ordinal); got != index || err != nil {
			t.Errorf("FindDevice(%d) = %d, %v; want %d", ordinal, got, err, index)
		}
	}
	_, err := c.FindDevice(2)
	want(t, err, syscall.ENODEV, "CUDA device 2", "not a PCI address")
	_, err = c.FindDevice(3)
	want(t, err, syscall.ENODEV, "3 devices")
	_, err = c.FindDevice(1 << 40)
	want(t, err, syscall.ENODEV, "3 devices")
	_, err = c.FindDevice(-1)
	want(t, err, syscall.EINVAL, "CUDA device -1")
}

func TestEachWayToHaveNoDriverReadsDifferently(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	_, err := New(Config{SysfsRoot: root, NVML: "libnvidia-ml-none.so", Library: dir + "/libcuda-none.so"}).FindDevice(0)
	want(t, err, syscall.ENODEV, "cannot load", "libcuda-none.so")

	_, err = New(Config{SysfsRoot: root, NVML: "libnvidia-ml-none.so", Library: dltest.Build(t, dir, "libcuda-old.so", cuda, "-DNO_INIT")}).FindDevice(0)
	want(t, err, syscall.ENODEV, "no function cuInit", "libcuda-old.so")

	c := New(Config{SysfsRoot: root, NVML: "libnvidia-ml-none.so", Library: dltest.Build(t, dir, "libcuda-sick.so", cuda)})
	t.Setenv("CUDA_STANDIN_INIT", "100")
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "cuInit", "100", "no CUDA-capable device is detected")
	t.Setenv("CUDA_STANDIN_INIT", "3")
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "cuInit", "initialization error", "forked")
	t.Setenv("CUDA_STANDIN_INIT", "999")
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "cuInit", "999")
}

func TestLibraryWithoutAFunctionIsUnloadedAgain(t *testing.T) {
	path := dltest.Build(t, t.TempDir(), "libcuda-partial.so", cuda, "-DNO_INIT")
	_, err := New(Config{Library: path}).FindDevice(0)
	want(t, err, syscall.ENODEV, "no function")
	if _, err := dl.OpenLoaded(path); err == nil {
		t.Fatal("the library that was of no use is still loaded")
	}
}

func TestFailuresAreNotRemembered(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	c := New(Config{SysfsRoot: root, NVML: "libnvidia-ml-none.so", Library: filepath.Join(dir, "libcuda-late.so")})
	_, err := c.FindDevice(0)
	want(t, err, syscall.ENODEV, "cannot load")

	dltest.Build(t, dir, "libcuda-late.so", cuda)
	t.Setenv("CUDA_STANDIN_INIT", "100")
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "cuInit")

	t.Setenv("CUDA_STANDIN_INIT", "0")
	t.Setenv("CUDA_STANDIN_COUNT", "0")
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "0 devices")

	t.Setenv("CUDA_STANDIN_COUNT", "1")
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "no phxfs device at all", "0000:65:00.0")

	device(t, root, "phxfs_dev0", "0000:66:00.0")
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "no phxfs device has PCI address 0000:65:00.0", "0: 0000:66:00.0")

	device(t, root, "phxfs_dev1", "0000:65:00.0")
	if got, err := c.FindDevice(0); got != 1 || err != nil {
		t.Fatalf("once everything is there: %d, %v; want 1", got, err)
	}
}

func TestThreadsMayRaceToTheFirstDevice(t *testing.T) {
	root := t.TempDir()
	device(t, root, "phxfs_dev3", "0000:65:00.0")
	c := New(Config{SysfsRoot: root, NVML: "libnvidia-ml-none.so", Library: dltest.Build(t, t.TempDir(), "libcuda-race.so", cuda)})
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			<-start
			if got, err := c.FindDevice(0); got != 3 || err != nil {
				t.Errorf("FindDevice = %d, %v; want 3", got, err)
			}
		})
	}
	close(start)
	wg.Wait()
}

func TestNameAndPageSize(t *testing.T) {
	c := New(Config{})
	if c.Name() != "NVIDIA" || c.PageSize() != 65536 || c.library != "libcuda.so.1" {
		t.Fatalf("name %q, page size %d, library %q", c.Name(), c.PageSize(), c.library)
	}
}
