package ascend

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
	SysfsRoot  string // where sysfs is mounted; "": /sys
	Runtime    string // file name or path of the CANN runtime; "": libascendcl.so
	Management string // file name or path of the management library; "": libdcmi.so
}

// Connector finds Ascend devices.
type Connector struct {
	cfg Config // set by New, then read-only

	// opened is both libraries once they were loaded and have every function
	// we need. They are never unloaded. Written once, by whichever thread
	// comes first.
	opened atomic.Pointer[libraries]

	// announced is the page size that the module announced, in bytes, or 0
	// while none did. Written once: the first answer stays.
	announced atomic.Uint64
}

var _ connectors.Connector = (*Connector)(nil)

// New returns a connector and touches nothing yet.
func New(cfg Config) *Connector {
	if cfg.Runtime == "" {
		cfg.Runtime = "libascendcl.so"
	}
	if cfg.Management == "" {
		cfg.Management = "libdcmi.so"
	}
	return &Connector{cfg: cfg}
}

// Name is "ASCEND".
func (c *Connector) Name() string { return "ASCEND" }

// PageSize is the largest page size that a phxfs device announces, in bytes,
// or 4096 while none does.
func (c *Connector) PageSize() uint64 {
	if n := c.announced.Load(); n != 0 {
		return n
	}
	n, err := pci.LargestPageSize(c.cfg.SysfsRoot)
	if err != nil {
		return olderPageSize
	}
	c.announced.CompareAndSwap(0, n)
	return c.announced.Load()
}

// FindDevice returns the index of the phxfs device of Ascend device ordinal.
// EINVAL: negative. ENODEV: a library or a function of it is missing, one does
// not start, there is no such device, or no phxfs device with its PCI address;
// the text says which. May block while the runtime starts.
func (c *Connector) FindDevice(ordinal int) (int, error) {
	if ordinal < 0 {
		return 0, fmt.Errorf("ASCEND device %d: %w", ordinal, syscall.EINVAL)
	}
	l, err := c.libraries()
	if err != nil {
		return 0, fmt.Errorf("ASCEND device %d: %w", ordinal, err)
	}
	physical, err := l.physical(ordinal)
	if err != nil {
		return 0, fmt.Errorf("ASCEND device %d: %w", ordinal, err)
	}
	address, err := l.address(physical)
	if err != nil {
		return 0, fmt.Errorf("ASCEND device %d: %w", ordinal, err)
	}
	index, err := pci.FindIndex(c.cfg.SysfsRoot, address)
	if err != nil {
		return 0, fmt.Errorf("ASCEND device %d: %w", ordinal, err)
	}
	return index, nil
}

// libraries opens both libraries at the first call that succeeds. Threads that
// race each open them; all but one give their references back.
func (c *Connector) libraries() (*libraries, error) {
	if l := c.opened.Load(); l != nil {
		return l, nil
	}
	l, err := openLibraries(c.cfg.Runtime, c.cfg.Management)
	if err != nil {
		return nil, err
	}
	if !c.opened.CompareAndSwap(nil, l) {
		l.close() // nothing in them was called through these references
		return c.opened.Load(), nil
	}
	return l, nil
}
