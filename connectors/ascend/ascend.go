package ascend

import (
	"libphoenix/connectors"
	"libphoenix/connectors/lookup"
	"libphoenix/internal/dl"
	"libphoenix/internal/pci"
)

// Config is what a connector is built from; the zero value is the product's.
type Config struct {
	SysfsRoot  string // where sysfs is mounted; "": /sys
	Runtime    string // file name or path of the CANN runtime; "": libascendcl.so
	Management string // file name or path of the management library; "": libdcmi.so
}

// Connector finds Ascend devices.
type Connector struct {
	cfg  Config     // set by New, then read-only
	bus  lookup.Bus // likewise
	page lookup.PageSize

	opened dl.Lazy[libraries] // both of them
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
	c := &Connector{cfg: cfg}
	c.bus = lookup.Bus{Vendor: "ASCEND", SysfsRoot: cfg.SysfsRoot, Address: c.address}
	return c
}

// Name is "ASCEND".
func (c *Connector) Name() string { return "ASCEND" }

// PageSize is the largest page size that a phxfs device announces, in bytes,
// or 4096 while none does.
func (c *Connector) PageSize() uint64 { return c.page.Get(c.cfg.SysfsRoot) }

// FindDevice returns the index of the phxfs device of Ascend device ordinal.
// EINVAL: negative. ENODEV: a library or a function of it is missing, one does
// not start, there is no such device, or no phxfs device with its PCI address;
// the text says which. May block while the runtime starts.
func (c *Connector) FindDevice(ordinal int) (int, error) { return c.bus.Find(ordinal) }

func (c *Connector) address(ordinal int) (pci.Address, error) {
	l, err := c.opened.Get(func() (*libraries, error) { return openLibraries(c.cfg.Runtime, c.cfg.Management) }, (*libraries).close)
	if err != nil {
		return pci.Address{}, err
	}
	physical, err := l.physical(ordinal)
	if err != nil {
		return pci.Address{}, err
	}
	return l.address(physical)
}
