package amd

import (
	"fmt"
	"sync/atomic"
	"syscall"

	"libphoenix/connectors"
	"libphoenix/internal/pci"
)

// olderPageSize is what modules that announce no page size need, in bytes.
const olderPageSize = 4096

// Config is what a connector is built from; the zero value is the product's.
type Config struct {
	SysfsRoot string   // where sysfs is mounted; "": /sys
	Libraries []string // file names or paths of the runtime, best first; nil: libamdhip64.so with its versions
}

// Connector finds HIP devices.
type Connector struct {
	sysfsRoot string   // set by New, then read-only
	libraries []string // set by New, then read-only

	// opened is the runtime once it was loaded and has every function we need.
	// It is never unloaded. Written once, by whichever thread comes first.
	opened atomic.Pointer[runtime]

	// announced is the page size that the module announced, in bytes, or 0
	// while none did. Written once: the first answer stays.
	announced atomic.Uint64
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Liveness  = (*Connector)(nil)
)

// New returns a connector and touches nothing yet.
func New(cfg Config) *Connector {
	if cfg.Libraries == nil {
		cfg.Libraries = []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"}
	}
	return &Connector{sysfsRoot: cfg.SysfsRoot, libraries: cfg.Libraries}
}

// Name is "AMD".
func (c *Connector) Name() string { return "AMD" }

// PageSize is the largest page size that a phxfs device announces, in bytes,
// or 4096 while none does.
func (c *Connector) PageSize() uint64 {
	if n := c.announced.Load(); n != 0 {
		return n
	}
	n, err := pci.LargestPageSize(c.sysfsRoot)
	if err != nil {
		return olderPageSize
	}
	c.announced.CompareAndSwap(0, n)
	return c.announced.Load()
}

// FindDevice returns the index of the phxfs device of HIP device ordinal.
// EINVAL: negative. ENODEV: no libamdhip64, one without a function we need, a
// runtime that does not start, no such HIP device, or no phxfs device with its
// PCI address; the text says which. May block while the runtime starts.
func (c *Connector) FindDevice(ordinal int) (int, error) {
	if ordinal < 0 {
		return 0, fmt.Errorf("HIP device %d: %w", ordinal, syscall.EINVAL)
	}
	r, err := c.runtime()
	if err != nil {
		return 0, fmt.Errorf("HIP device %d: %w", ordinal, err)
	}
	text, err := r.busID(ordinal)
	if err != nil {
		return 0, fmt.Errorf("HIP device %d: %w", ordinal, err)
	}
	address, err := pci.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("HIP device %d: %w (the runtime says: %v)", ordinal, syscall.ENODEV, err)
	}
	index, err := pci.FindIndex(c.sysfsRoot, address)
	if err != nil {
		return 0, fmt.Errorf("HIP device %d: %w", ordinal, err)
	}
	return index, nil
}

// runtime opens the HIP runtime at the first call that succeeds. Threads that
// race each open it; all but one give their reference back.
func (c *Connector) runtime() (*runtime, error) {
	if r := c.opened.Load(); r != nil {
		return r, nil
	}
	r, err := openRuntime(c.libraries)
	if err != nil {
		return nil, err
	}
	if !c.opened.CompareAndSwap(nil, r) {
		_ = r.lib.Close() // nothing in it was called through this reference
		return c.opened.Load(), nil
	}
	return r, nil
}
