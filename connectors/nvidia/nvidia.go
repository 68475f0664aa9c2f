package nvidia

import (
	"libphoenix/connectors"
	"libphoenix/connectors/life"
	"libphoenix/connectors/lookup"
	"libphoenix/internal/dl"
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
	life.Asker            // Liveness
	library    string     // set by New, then read-only
	bus        lookup.Bus // likewise

	opened dl.Lazy[driver]
	copies dl.Lazy[copier] // the same with what staging needs
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
	c := &Connector{Asker: newLife(), library: cfg.Library}
	c.bus = lookup.Bus{Vendor: "CUDA", SysfsRoot: cfg.SysfsRoot, Address: c.address}
	return c
}

// Name is "NVIDIA".
func (c *Connector) Name() string { return "NVIDIA" }

// PageSize is 65536 bytes.
func (c *Connector) PageSize() uint64 { return pageSize }

// FindDevice returns the index of the phxfs device of CUDA device ordinal.
// EINVAL: negative. ENODEV: no libcuda, a libcuda without a function we need,
// a driver that does not start, no such CUDA device, or no phxfs device with
// its PCI address; the text says which. May block while the driver starts.
func (c *Connector) FindDevice(ordinal int) (int, error) { return c.bus.Find(ordinal) }

func (c *Connector) address(ordinal int) (pci.Address, error) {
	d, err := c.driver()
	if err != nil {
		return pci.Address{}, err
	}
	return d.address(ordinal)
}

func (c *Connector) driver() (*driver, error) {
	return c.opened.Get(func() (*driver, error) { return openDriver(c.library) }, (*driver).close)
}
