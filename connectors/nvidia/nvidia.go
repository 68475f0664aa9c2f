package nvidia

import (
	"errors"
	"fmt"

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
	NVML      string // likewise of NVML; "": libnvidia-ml.so.1

	// LookupEnv reads the environment of the process now; nil: it is empty.
	// Asked only where the driver does not answer.
	LookupEnv func(name string) (string, bool)
}

// Connector finds CUDA devices.
type Connector struct {
	life.Asker            // Liveness
	library    string     // set by New, then read-only
	bus        lookup.Bus // likewise

	nvmlLibrary string                      // likewise
	environment func(string) (string, bool) // likewise

	opened dl.Lazy[driver]
	copies dl.Lazy[copier] // the same with what staging needs
	nvml   dl.Lazy[nvml]
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
	if cfg.NVML == "" {
		cfg.NVML = "libnvidia-ml.so.1"
	}
	if cfg.LookupEnv == nil {
		cfg.LookupEnv = func(string) (string, bool) { return "", false }
	}
	c := &Connector{Asker: newLife(), library: cfg.Library, nvmlLibrary: cfg.NVML, environment: cfg.LookupEnv}
	c.bus = lookup.Bus{Vendor: "CUDA", SysfsRoot: cfg.SysfsRoot, Address: c.address}
	return c
}

// Name is "NVIDIA".
func (c *Connector) Name() string { return "NVIDIA" }

// PageSize is 65536 bytes.
func (c *Connector) PageSize() uint64 { return pageSize }

// FindDevice returns the index of the phxfs device of CUDA device ordinal.
// EINVAL: negative. ENODEV: neither libcuda nor NVML answers, no such CUDA
// device, or no phxfs device with its PCI address; the text says which. May
// block while the driver starts.
func (c *Connector) FindDevice(ordinal int) (int, error) { return c.bus.Find(ordinal) }

// address is the PCI address of an ordinal: CUDA's answer, if it works in this
// process, else what NVML and the environment say.
func (c *Connector) address(ordinal int) (pci.Address, error) {
	d, err := c.driver()
	if err == nil {
		err = d.start()
	}
	if err == nil {
		return d.address(ordinal)
	}
	if call, ok := errors.AsType[*dl.CallError](err); ok && call.Code == noDevice {
		return pci.Address{}, err // an answer, and NVML has no better one
	}
	address, other := c.addressByNVML(ordinal)
	if other != nil {
		return pci.Address{}, fmt.Errorf("%w; nor does NVML help: %v", err, other)
	}
	return address, nil
}

func (c *Connector) driver() (*driver, error) {
	return c.opened.Get(func() (*driver, error) { return openDriver(c.library) }, (*driver).close)
}
