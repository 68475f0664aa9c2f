package pci

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"libphoenix/internal/smallfile"
)

// Devices is how many phxfs devices there can be: indices 0..7.
const Devices = 8

// class is the folder that lists the devices. sysfsRoot "" means /sys.
func class(sysfsRoot string) string {
	if sysfsRoot == "" {
		sysfsRoot = "/sys"
	}
	return path.Join(sysfsRoot, "class/phxfs-generic")
}

func attribute(sysfsRoot string, index int, name string) string {
	return path.Join(class(sysfsRoot), "phxfs_dev"+strconv.Itoa(index), name)
}

// FindIndex returns the index 0..7 of the phxfs device at address a. Indices
// may have holes, and a device whose address cannot be read or understood is
// passed over. ENODEV: there is none; the text says which devices there are.
func FindIndex(sysfsRoot string, a Address) (int, error) {
	var seen []string
	for i := range Devices {
		file := attribute(sysfsRoot, i, "pci_bdf")
		text, err := smallfile.Read(file)
		if err != nil {
			if unix.Access(path.Dir(file), unix.F_OK) == nil {
				seen = append(seen, fmt.Sprintf("%d: unreadable (%v)", i, err))
			}
			continue
		}
		got, err := Parse(string(text))
		if err != nil {
			seen = append(seen, fmt.Sprintf("%d: %v", i, err))
			continue
		}
		if got == a {
			return i, nil
		}
		seen = append(seen, fmt.Sprintf("%d: %v", i, got))
	}
	if seen == nil {
		return 0, fmt.Errorf("no phxfs device at all in %s, so none for PCI address %v (is the kernel module loaded?): %w",
			class(sysfsRoot), a, syscall.ENODEV)
	}
	return 0, fmt.Errorf("no phxfs device has PCI address %v (there are %s): %w", a, strings.Join(seen, ", "), syscall.ENODEV)
}

// PageSize returns the alignment in bytes that the kernel module asks for on
// device index, a power of two. ENODEV: the attribute is missing, as with
// older modules, or there is no such device. EINVAL: it holds something else
// than a power of two; the caller then has to fall back, too.
func PageSize(sysfsRoot string, index int) (uint64, error) {
	file := attribute(sysfsRoot, index, "page_size")
	raw, err := smallfile.Read(file)
	if err != nil {
		return 0, fmt.Errorf("page size of phxfs device %d: %w (%v)", index, syscall.ENODEV, err)
	}
	text := strings.TrimSpace(string(raw))
	n, err := strconv.ParseUint(text, 0, 63)
	if err != nil || n == 0 || n&(n-1) != 0 {
		return 0, fmt.Errorf("page size of phxfs device %d: %q in %s is no power of two: %w", index, text, file, syscall.EINVAL)
	}
	return n, nil
}

// LargestPageSize is the largest page size that any phxfs device announces:
// memory aligned to it can be registered on each of them. ENODEV: none
// announces one.
func LargestPageSize(sysfsRoot string) (uint64, error) {
	var largest uint64
	for i := range Devices {
		if n, err := PageSize(sysfsRoot, i); err == nil {
			largest = max(largest, n)
		}
	}
	if largest == 0 {
		return 0, fmt.Errorf("no phxfs device announces a page size: %w", syscall.ENODEV)
	}
	return largest, nil
}
