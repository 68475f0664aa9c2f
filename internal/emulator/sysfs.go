package emulator

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sysfsTree is a real folder that stands for /sys/class/phxfs-generic, so that
// listing it and opening relative to it need no help.
type sysfsTree struct{ dir string }

// newSysfsTree makes it; the caller owns it and calls remove. addresses are
// the devices' PCI addresses.
func newSysfsTree(addresses []string) (*sysfsTree, error) {
	dir, err := os.MkdirTemp("", "phx-emulate-")
	if err != nil {
		return nil, fmt.Errorf("make the folder that stands for sysfs: %w", err)
	}
	t := &sysfsTree{dir}
	if err := t.fill(addresses); err != nil {
		t.remove()
		return nil, fmt.Errorf("fill the folder that stands for sysfs: %w", err)
	}
	return t, nil
}

func (t *sysfsTree) fill(addresses []string) error {
	if err := os.Chmod(t.dir, 0o755); err != nil { // for a program that changes its user
		return err
	}
	for i, address := range addresses {
		device := filepath.Join(t.dir, nodeName(i))
		if err := os.Mkdir(device, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(device, "pci_bdf"), []byte(address+"\n"), 0o444); err != nil {
			return err
		}
	}
	return nil
}

func (t *sysfsTree) remove() { _ = os.RemoveAll(t.dir) }

// path is where a clean path below the class folder lies.
func (t *sysfsTree) path(rest string) string { return filepath.Join(t.dir, rest) }

// open opens a path below the class folder, for reading only. The caller owns
// the descriptor.
func (t *sysfsTree) open(rest string, flags int) (int, error) {
	if flags&unix.O_ACCMODE != unix.O_RDONLY {
		return -1, unix.EACCES
	}
	keep := flags & (unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_NOFOLLOW)
	return unix.Open(t.path(rest), keep|unix.O_CLOEXEC, 0)
}

// defaultAddress is the PCI address of a device for which none was given.
func defaultAddress(index int) string { return fmt.Sprintf("0000:00:%02x.0", 4+index) }
