// Package lookup is how connectors of PCI devices come from the vendor's
// ordinal to the phxfs device, and to the page size that it needs.
package lookup

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"syscall"

	"libphoenix/internal/pci"
)

// Bus is where the phxfs devices of a vendor are looked for.
type Bus struct {
	Vendor    string // in messages: "CUDA"
	SysfsRoot string // where sysfs is mounted; "": /sys
	// Address asks the vendor where its device is, ordinal >= 0. ENODEV: there is
	// no such device, or no vendor's library; the text says which.
	Address func(ordinal int) (pci.Address, error)
}

// Find implements connectors.Connector.FindDevice.
func (b *Bus) Find(ordinal int) (int, error) {
	if ordinal < 0 {
		return 0, fmt.Errorf("%s device %d: %w", b.Vendor, ordinal, syscall.EINVAL)
	}
	address, err := b.Address(ordinal)
	if err != nil {
		return 0, b.Of(ordinal, err)
	}
	index, err := pci.FindIndex(b.SysfsRoot, address)
	if err != nil {
		return 0, b.Of(ordinal, err)
	}
	return index, nil
}

// Of says which device err is about; nil stays nil.
func (b *Bus) Of(ordinal int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s device %d: %w", b.Vendor, ordinal, err)
}

// Parse reads the address that a library has written, up to its NUL. ENODEV: it
// is none.
func Parse(text []byte) (pci.Address, error) {
	text, _, _ = bytes.Cut(text, []byte{0})
	address, err := pci.Parse(string(text))
	if err != nil {
		return pci.Address{}, fmt.Errorf("%w (the vendor's library says: %v)", syscall.ENODEV, err)
	}
	return address, nil
}

// Counted refuses an ordinal beyond the devices that the vendor counts. variables
// are those that hide some. ENODEV.
func Counted(ordinal int, count int64, variables string) error {
	if ordinal >= 0 && int64(ordinal) < count {
		return nil
	}
	return fmt.Errorf("the vendor's library shows this process %d devices (%s): %w", count, variables, syscall.ENODEV)
}

// olderPageSize is what modules that announce no page size need, in bytes.
const olderPageSize = 4096

// PageSize is the page size of a vendor whose module announces one.
type PageSize struct {
	// announced is the page size that the module announced, in bytes, or 0
	// while none did. Written once: the first answer stays.
	announced atomic.Uint64
}

// Get is the largest page size that a phxfs device announces, or 4096 bytes
// while none does.
func (p *PageSize) Get(sysfsRoot string) uint64 {
	if n := p.announced.Load(); n != 0 {
		return n
	}
	n, err := pci.LargestPageSize(sysfsRoot)
	if err != nil {
		return olderPageSize
	}
	p.announced.CompareAndSwap(0, n)
	return p.announced.Load()
}
