package core

import (
	"errors"
	"syscall"

	"libphoenix/connectors"
	"libphoenix/internal/phxdev"
)

// Node is an open device as core uses it. Errors carry a syscall.Errno.
type Node interface {
	// Map makes [addr, addr+lenBytes) of device memory usable at the host
	// address it returns. After an error nothing is left behind.
	Map(addr DevAddr, lenBytes uint64) (HostAddr, error)
	// Unmap drops the pin behind host (the ioctl only); no I/O is in it.
	Unmap(addr DevAddr, host HostAddr, lenBytes uint64) error
	// Munmap gives the address space at host back, after Unmap.
	Munmap(host HostAddr, lenBytes uint64) error
	// FD is the descriptor of the device node, borrowed; -1: there is none.
	FD() int
	// Close closes the node. It is the last call.
	Close() error
}

// deviceNode is a device of the kernel module.
type deviceNode struct{ dev *phxdev.Device }

func openDeviceNode(dir string, index int) (Node, error) {
	dev, err := phxdev.Open(dir, index)
	if err != nil {
		return nil, err
	}
	return deviceNode{dev}, nil
}

// Map takes a new mapping for each attempt that was interrupted: MAP may be
// called only once on one.
func (n deviceNode) Map(addr DevAddr, lenBytes uint64) (host HostAddr, err error) {
	for range phxdev.Interruptions {
		if host, err = n.mapOnce(addr, lenBytes); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return host, err
}

func (n deviceNode) mapOnce(addr DevAddr, lenBytes uint64) (HostAddr, error) {
	host, err := n.dev.Mmap(lenBytes)
	if err != nil {
		return 0, err
	}
	if err := n.dev.Map(host, uint64(addr), lenBytes); err != nil {
		_ = phxdev.Munmap(host, lenBytes) // a whole mapping, just made: cannot fail but for memory, and then only address space is lost
		return 0, err
	}
	return HostAddr(host), nil
}

func (n deviceNode) Unmap(addr DevAddr, host HostAddr, lenBytes uint64) error {
	return n.dev.Unmap(uintptr(host), uint64(addr), lenBytes)
}

func (n deviceNode) Munmap(host HostAddr, lenBytes uint64) error {
	return phxdev.Munmap(uintptr(host), lenBytes)
}

func (n deviceNode) FD() int      { return n.dev.FD() }
func (n deviceNode) Close() error { return n.dev.Close() }

// embeddedNode is a device whose memory is this process's own: registered
// memory is used where it lies and nothing is due for it.
type embeddedNode struct{ connectors.Embedded }

func (n embeddedNode) Map(addr DevAddr, lenBytes uint64) (HostAddr, error) {
	if err := n.CheckRange(addr, lenBytes); err != nil {
		return 0, err
	}
	return HostAddr(addr), nil
}

func (embeddedNode) Unmap(DevAddr, HostAddr, uint64) error { return nil }
func (embeddedNode) Munmap(HostAddr, uint64) error         { return nil }
func (embeddedNode) FD() int                               { return -1 }
func (embeddedNode) Close() error                          { return nil }
