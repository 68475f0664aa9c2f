package nvidia

import (
	"fmt"
	"sync/atomic"
	"syscall"

	"libphoenix/connectors"
	"libphoenix/internal/pci"
)

// pageSize is 64 KiB, the page of the GPU's memory that the kernel module
// pins, in bytes.
const pageSize = 64 << 10

// Config is what a connector is built from; the zero value is the product's.
type Config struct {
	SysfsRoot string // where sysfs is mounted; "": /sys
	Library   string // file name or path of the driver library; "": libcuda.so.1
}

// Connector finds CUDA devices.
type Connector struct {
	sysfsRoot string // set by New, then read-only
	library   string // set by New, then read-only

	// opened is the driver once it was loaded and has every function we need.
	// It is never unloaded. Written once, by whichever thread comes first.
	opened atomic.Pointer[driver]
	copies atomic.Pointer[copier] // likewise, with what staging needs
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Liveness  = (*Connector)(nil)
	_ connectors.Stager    = (*Connector)(nil)
)

// New returns a connector and touches nothing yet.
func New(cfg Config) *Connector {
	if cfg.Library == "" {
		cfg.Library = "libcuda.so.1"
	}
	return &Connector{sysfsRoot: cfg.SysfsRoot, library: cfg.Library}
}

// Name is "NVIDIA".
func (c *Connector) Name() string { return "NVIDIA" }

// PageSize is 65536 bytes.
func (c *Connector) PageSize() uint64 { return pageSize }

// FindDevice returns the index of the phxfs device of CUDA device ordinal.
// EINVAL: negative. ENODEV: no libcuda, a libcuda without a function we need,
// a driver that does not start, no such CUDA device, or no phxfs device with
// its PCI address; the text says which. May block while the driver starts.
func (c *Connector) FindDevice(ordinal int) (int, error) {
	if ordinal < 0 {
		return 0, fmt.Errorf("CUDA device %d: %w", ordinal, syscall.EINVAL)
	}
	d, err := c.driver()
	if err != nil {
		return 0, fmt.Errorf("CUDA device %d: %w", ordinal, err)
	}
	text, err := d.busID(ordinal)
	if err != nil {
		return 0, fmt.Errorf("CUDA device %d: %w", ordinal, err)
	}
	address, err := pci.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("CUDA device %d: %w (the driver says: %v)", ordinal, syscall.ENODEV, err)
	}
	index, err := pci.FindIndex(c.sysfsRoot, address)
	if err != nil {
		return 0, fmt.Errorf("CUDA device %d: %w", ordinal, err)
	}
	return index, nil
}

// driver opens the driver library at the first call that succeeds. Threads
// that race each open it; all but one give their reference back.
func (c *Connector) driver() (*driver, error) {
	if d := c.opened.Load(); d != nil {
		return d, nil
	}
	d, err := openDriver(c.library)
	if err != nil {
		return nil, err
	}
	if !c.opened.CompareAndSwap(nil, d) {
		_ = d.lib.Close() // nothing in it was called through this reference
		return c.opened.Load(), nil
	}
	return d, nil
}
