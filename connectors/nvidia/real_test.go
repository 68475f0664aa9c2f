package nvidia

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"libphoenix/connectors/connectorstest"
	"libphoenix/internal/dl/dltest"
	"libphoenix/internal/need"
)

// realCUDA skips the test on a machine without a CUDA device and returns the
// PCI address that FindDevice looks for.
func realCUDA(t *testing.T, c *Connector) string {
	t.Helper()
	d, err := c.driver()
	if err != nil {
		need.Missing(t, need.GPU, "%v", err)
	}
	address, err := d.address(0)
	if err != nil {
		need.Missing(t, need.GPU, "%v", err)
	}
	return address.String()
}

func TestRealDeviceIsFoundByItsAddress(t *testing.T) {
	if !connectorstest.Alone(t) { // initialises CUDA, which no later test should inherit
		return
	}
	root := t.TempDir()
	c := New(Config{SysfsRoot: root})
	address := realCUDA(t, c)
	_, err := c.FindDevice(0)
	connectorstest.Want(t, err, syscall.ENODEV, "no phxfs device at all")
	connectorstest.Announce(t, root, "phxfs_dev6", "pci_bdf", address)
	if got, err := c.FindDevice(0); got != 6 || err != nil {
		t.Fatalf("FindDevice(0) = %d, %v; want 6 (device %s)", got, err, address)
	}
	_, err = c.FindDevice(1 << 20)
	connectorstest.Want(t, err, syscall.ENODEV, "devices (CUDA_VISIBLE_DEVICES counts)")
}

func TestRealMemoryThroughItsWholeLife(t *testing.T) {
	program := os.Getenv("PHX_TEST_MEMORY") // built before, for a machine without a compiler
	if program == "" {
		program = dltest.Program(t, t.TempDir(), "memory", "", "-std=gnu11", "-I.", "testdata/memory.c", "identity.c")
	}
	out, err := exec.Command(program).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 77 {
		need.Missing(t, need.GPU, "libcuda.so.1, or a CUDA device")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("\n%s", out)
}
