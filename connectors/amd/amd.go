package amd

import (
	"libphoenix/connectors"
	"libphoenix/connectors/life"
	"libphoenix/connectors/lookup"
	"libphoenix/internal/dl"
	"libphoenix/internal/pci"
)

// Config is what a connector is built from; the zero value is the product's.
type Config struct {
	SysfsRoot string   // where sysfs is mounted; "": /sys
	Libraries []string // file names or paths of the runtime, best first; nil: libamdhip64.so with its versions
}

// Connector finds HIP devices.
type Connector struct {
	life.Asker            // Liveness
	libraries  []string   // set by New, then read-only
	bus        lookup.Bus // likewise
	page       lookup.PageSize

	opened dl.Lazy[runtime]
	copies dl.Lazy[copier] // the same with what staging needs
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Liveness  = (*Connector)(nil)
	_ connectors.Stager    = (*Connector)(nil)
)

// New returns a connector and touches nothing yet.
func New(cfg Config) *Connector {
	if cfg.Libraries == nil {
		cfg.Libraries = []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"}
	}
	c := &Connector{Asker: newLife(), libraries: cfg.Libraries}
	c.bus = lookup.Bus{Vendor: "HIP", SysfsRoot: cfg.SysfsRoot, Address: c.address}
	return c
}

// Name is "AMD".
func (c *Connector) Name() string { return "AMD" }

// PageSize is the largest page size that a phxfs device announces, in bytes,
// or 4096 while none does.
func (c *Connector) PageSize() uint64 { return c.page.Get(c.bus.SysfsRoot) }

// FindDevice returns the index of the phxfs device of HIP device ordinal.
// EINVAL: negative. ENODEV: no libamdhip64, one without a function we need, a
// runtime that does not start, no such HIP device, or no phxfs device with its
// PCI address; the text says which. May block while the runtime starts.
func (c *Connector) FindDevice(ordinal int) (int, error) { return c.bus.Find(ordinal) }

func (c *Connector) address(ordinal int) (pci.Address, error) {
	r, err := c.runtime()
	if err != nil {
		return pci.Address{}, err
	}
	return r.address(ordinal)
}

func (c *Connector) runtime() (*runtime, error) {
	return c.opened.Get(func() (*runtime, error) { return openRuntime(c.libraries) }, (*runtime).close)
}
