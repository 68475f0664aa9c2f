package pci

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// put writes one attribute of a device below a sysfs root.
func put(t *testing.T, root string, index int, name, text string) {
	t.Helper()
	dir := filepath.Join(root, "class/phxfs-generic/phxfs_dev"+strconv.Itoa(index))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFindIndexAcrossHolesAndSpellings(t *testing.T) {
	root := t.TempDir()
	put(t, root, 1, "pci_bdf", "0000:65:00.0\n")
	put(t, root, 4, "pci_bdf", "0000:AF:00.0\n")
	put(t, root, 7, "pci_bdf", "0001:65:00.0\n")
	for address, want := range map[string]int{"00000000:65:00.0": 1, "af:00.0": 4, "0001:65:00.0": 7} {
		a, err := Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := FindIndex(root, a); got != want || err != nil {
			t.Errorf("FindIndex(%q) = %d, %v; want %d", address, got, err, want)
		}
	}
}

func TestFindIndexSaysWhatThereIsInstead(t *testing.T) {
	root := t.TempDir()
	put(t, root, 2, "pci_bdf", "0000:65:00.0\n")
	put(t, root, 3, "pci_bdf", "rubbish\n")
	put(t, root, 5, "other", "")
	_, err := FindIndex(root, Address{Bus: 0x66})
	if !errors.Is(err, syscall.ENODEV) {
		t.Fatalf("got %v, want ENODEV", err)
	}
	for _, part := range []string{"0000:66:00.0", "2: 0000:65:00.0", `3: "rubbish"`, "5: unreadable"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	// Another function of the same slot is another device.
	if _, err := FindIndex(root, Address{Bus: 0x65, Function: 1}); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("other function: %v, want ENODEV", err)
	}
	// The eighth index is the last one the library knows.
	put(t, root, 8, "pci_bdf", "0000:66:00.0\n")
	if _, err := FindIndex(root, Address{Bus: 0x66}); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("index 8: %v, want ENODEV", err)
	}
}

func TestFindIndexWithoutTheModuleSaysSo(t *testing.T) {
	root := t.TempDir()
	_, err := FindIndex(root, Address{})
	if !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "kernel module") {
		t.Fatalf("got %v, want ENODEV and a word about the module", err)
	}
	// A failure is not remembered.
	put(t, root, 0, "pci_bdf", "0000:00:00.0\n")
	if got, err := FindIndex(root, Address{}); got != 0 || err != nil {
		t.Fatalf("after the module came: %d, %v", got, err)
	}
}

func TestPageSizes(t *testing.T) {
	root := t.TempDir()
	if _, err := LargestPageSize(root); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("largest of none: %v, want ENODEV", err)
	}
	put(t, root, 0, "page_size", "4096\n")
	put(t, root, 3, "page_size", "0x10000\n")
	put(t, root, 4, "page_size", "12288\n")
	put(t, root, 5, "page_size", "-4096\n")
	put(t, root, 6, "page_size", "0\n")
	for index, want := range map[int]uint64{0: 4096, 3: 65536} {
		if got, err := PageSize(root, index); got != want || err != nil {
			t.Errorf("PageSize(%d) = %d, %v; want %d", index, got, err, want)
		}
	}
	for index, want := range map[int]syscall.Errno{1: syscall.ENODEV, 4: syscall.EINVAL, 5: syscall.EINVAL, 6: syscall.EINVAL} {
		if got, err := PageSize(root, index); !errors.Is(err, want) {
			t.Errorf("PageSize(%d) = %d, %v; want %v", index, got, err, want)
		}
	}
	if got, err := LargestPageSize(root); got != 65536 || err != nil {
		t.Errorf("largest = %d, %v; want 65536", got, err)
	}
}
