package amd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"libphoenix/internal/dl/dltest"
)

// hip is a stand-in runtime. HIP_STANDIN_INIT and HIP_STANDIN_COUNT change
// what it answers while it is loaded.
const hip = `
#include <stdlib.h>
#include <stdio.h>
static int number(const char *name, int otherwise) { const char *s = getenv(name); return s ? atoi(s) : otherwise; }
int hipInit(unsigned flags) { return flags ? 1 : number("HIP_STANDIN_INIT", 0); }
#ifndef NO_COUNT
int hipGetDeviceCount(int *n) { *n = number("HIP_STANDIN_COUNT", 3); return *n ? 0 : 100; }
#endif
int hipDeviceGetPCIBusId(char *text, int len, int ordinal) {
	static const char *const address[] = {"0000:c3:00.0", "0000:C4:00.0", ""};
	if (ordinal < 0 || ordinal > 2) return 101;
	return snprintf(text, len, "%s", address[ordinal]) >= len;
}
const char *hipGetErrorString(int code) { return code == 100 ? "no ROCm-capable device is detected" : "unknown"; }
`

// put writes one attribute of a phxfs device below a sysfs root.
func put(t *testing.T, root, name, attribute, text string) {
	t.Helper()
	dir := filepath.Join(root, "class/phxfs-generic", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, attribute), []byte(text+"\n"), 0o644); err != nil {
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
	put(t, root, "phxfs_dev7", "pci_bdf", "0000:C3:00.0")
	put(t, root, "phxfs_dev0", "pci_bdf", "0000:c4:00.0")
	// The versions are tried in their order; the first is missing here.
	lib := dltest.Build(t, t.TempDir(), "libhip-good.so", hip)
	c := New(Config{SysfsRoot: root, Libraries: []string{lib + ".7", lib}})
	for ordinal, index := range []int{7, 0} {
		if got, err := c.FindDevice(ordinal); got != index || err != nil {
			t.Errorf("FindDevice(%d) = %d, %v; want %d", ordinal, got, err, index)
		}
	}
	_, err := c.FindDevice(2)
	want(t, err, syscall.ENODEV, "HIP device 2", "not a PCI address")
	_, err = c.FindDevice(3)
	want(t, err, syscall.ENODEV, "3 devices")
	_, err = c.FindDevice(1 << 40)
	want(t, err, syscall.ENODEV, "3 devices")
	_, err = c.FindDevice(-1)
	want(t, err, syscall.EINVAL, "HIP device -1")
}

func TestEachWayToHaveNoRuntimeReadsDifferently(t *testing.T) {
	dir := t.TempDir()
	_, err := New(Config{Libraries: []string{dir + "/libhip-a.so", dir + "/libhip-b.so"}}).FindDevice(0)
	want(t, err, syscall.ENODEV, "cannot load", "libhip-a.so", "libhip-b.so")

	_, err = New(Config{Libraries: []string{dltest.Build(t, dir, "libhip-old.so", hip, "-DNO_COUNT")}}).FindDevice(0)
	want(t, err, syscall.ENODEV, "no function hipGetDeviceCount")

	c := New(Config{Libraries: []string{dltest.Build(t, dir, "libhip-sick.so", hip)}})
	t.Setenv("HIP_STANDIN_INIT", "3")
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "hipInit", "code 3 (unknown)")
	t.Setenv("HIP_STANDIN_INIT", "0")
	t.Setenv("HIP_STANDIN_COUNT", "0") // HIP reports this as an error of its own
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "hipGetDeviceCount", "no ROCm-capable device is detected")
}

func TestFailuresAreNotRemembered(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	c := New(Config{SysfsRoot: root, Libraries: []string{filepath.Join(dir, "libhip-late.so")}})
	_, err := c.FindDevice(0)
	want(t, err, syscall.ENODEV, "cannot load")
	dltest.Build(t, dir, "libhip-late.so", hip)
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "no phxfs device", "0000:c3:00.0")
	put(t, root, "phxfs_dev1", "pci_bdf", "0000:c3:00.0")
	if got, err := c.FindDevice(0); got != 1 || err != nil {
		t.Fatalf("once everything is there: %d, %v; want 1", got, err)
	}
}

func TestPageSizeIsTheLargestAnnouncedElse4096(t *testing.T) {
	root := t.TempDir()
	c := New(Config{SysfsRoot: root})
	if c.Name() != "AMD" {
		t.Errorf("name %q, want AMD", c.Name())
	}
	put(t, root, "phxfs_dev0", "pci_bdf", "0000:c3:00.0")
	if got := c.PageSize(); got != 4096 {
		t.Errorf("older module: page size %d, want 4096", got)
	}
	put(t, root, "phxfs_dev0", "page_size", "nonsense")
	if got := c.PageSize(); got != 4096 {
		t.Errorf("unreadable page size: %d, want 4096", got)
	}
	put(t, root, "phxfs_dev1", "page_size", "4096")
	put(t, root, "phxfs_dev4", "page_size", "65536")
	if got := c.PageSize(); got != 65536 {
		t.Errorf("4096 and 65536 announced: %d, want 65536", got)
	}
	put(t, root, "phxfs_dev4", "page_size", "4096")
	if got := c.PageSize(); got != 65536 {
		t.Errorf("the size that callers align by changed to %d", got)
	}
	if got := testing.AllocsPerRun(100, func() { c.PageSize() }); got != 0 {
		t.Errorf("%v allocations per question, want 0", got)
	}
}
