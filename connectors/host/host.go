package host

import (
	"fmt"
	"syscall"

	"libphoenix/connectors"
)

const (
	devices  = 8
	pageSize = 64 << 10 // bytes; the alignment that NVIDIA memory needs, so programs can move either way
)

// Connector has every capability that makes sense without a driver.
type Connector struct{}

var (
	_ connectors.Connector   = Connector{}
	_ connectors.Embedded    = Connector{}
	_ connectors.Copier      = Connector{}
	_ connectors.StreamFuncs = Connector{}
	_ connectors.Stager      = Connector{}
)

// New returns the connector.
func New() Connector { return Connector{} }

// Name is "HOST".
func (Connector) Name() string { return "HOST" }

// PageSize is 65536 bytes.
func (Connector) PageSize() uint64 { return pageSize }

// FindDevice returns ordinal itself, 0..7.
func (Connector) FindDevice(ordinal int) (int, error) {
	if ordinal < 0 {
		return 0, fmt.Errorf("host device %d: %w", ordinal, syscall.EINVAL)
	}
	if ordinal >= devices {
		return 0, fmt.Errorf("host device %d of 0..%d: %w", ordinal, devices-1, syscall.ENODEV)
	}
	return ordinal, nil
}

// CheckRange answers nil if every byte of [addr, addr+lenBytes) is mapped and
// writable at some moment during the call, else an error with EFAULT that
// names the first byte that is not, or the errno with which /proc/self/maps
// cannot be opened or read (EMFILE: no descriptor is left). An empty range is
// always fine. It allocates nothing when it succeeds.
func (Connector) CheckRange(addr connectors.DevAddr, lenBytes uint64) error {
	var buf [mapsBuf]byte
	return checkRange(uint64(addr), lenBytes, buf[:])
}

// LaunchHostFunc calls fn on this thread before it returns: work on host
// memory has no stream of its own, so whatever the caller queued is done. The
// caller must hold no lock that fn takes. stream is not looked at. A nil fn
// is EINVAL.
func (c Connector) LaunchHostFunc(ordinal int, stream uintptr, fn func()) error {
	if _, err := c.FindDevice(ordinal); err != nil {
		return err
	}
	if fn == nil {
		return fmt.Errorf("launch a nil function on host device %d: %w", ordinal, syscall.EINVAL)
	}
	fn()
	return nil
}
