package statemachine

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"

	"libphoenix/core"
)

const page = 64 << 10 // bytes; what registrations are multiples of

// Pages of every device that have a will of their own. What starts anywhere
// else succeeds.
const (
	pageNoMap      = 9  // MAP fails with ENOMEM
	pageLateUnmap  = 10 // the first UNMAP of each mapping fails with EIO
	pageLateMunmap = 11 // the first munmap of each mapping fails with ENOMEM
)

// Descriptors. Where a file ends, or breaks, is told by the offset within its
// block, so that the answer needs no state.
const (
	fdWhole  = 100 + iota // moves everything
	fdSlow                // at most 100 bytes at a time
	fdEnds                // ends 256 bytes into each block
	fdBreaks              // EIO from byte 100 of each block on
	fdHeld                // as fdWhole, but waits while the kernel holds
	fdParks               // likewise, and is counted in parked
	fdBad    = -1         // EBADF
)

const block = 512 // bytes

// cpuBase and up are addresses of ordinary memory.
const cpuBase = 1 << 46

// kernel is the driver and read(2) and write(2), as far as the library can
// tell. It keeps the books and writes down what would be a crash, a leak or
// lost data on the real one. The memory is nowhere: a file offset says which
// byte of which device is meant (offsetOf), and the host address must agree.
type kernel struct {
	yield bool // set before use: gives the processor away inside each call

	mu      sync.Mutex
	changed sync.Cond // held or parked has changed

	// Protected by mu.
	wrong  []string
	next   core.HostAddr
	maps   map[core.HostAddr]*mapping
	nodes  [core.Devices]int // open ones
	held   bool
	parked int // transfers of fdParks that wait for the end of held
}

// mapping is one mmap of a device.
type mapping struct {
	dev             int
	addr            core.DevAddr
	host            core.HostAddr
	n               uint64 // bytes
	pinned          bool   // UNMAP is due
	unmaps, munmaps int    // that failed
	users           int    // transfers inside
}

func newKernel() *kernel {
	k := &kernel{maps: map[core.HostAddr]*mapping{}, next: 1 << 40}
	k.changed.L = &k.mu
	return k
}

func (k *kernel) blame(format string, args ...any) {
	k.wrong = append(k.wrong, fmt.Sprintf(format, args...))
}

func (k *kernel) pause() {
	if k.yield {
		runtime.Gosched()
	}
}

// offsetOf is the file offset of the byte at a device address.
func offsetOf(dev int, addr core.DevAddr) int64 { return int64(dev)<<40 | int64(addr) }

func startsAt(addr core.DevAddr, n int) bool { return addr == core.DevAddr(n)*page }

func (k *kernel) open(_ string, dev int) (core.Node, error) {
	k.pause()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nodes[dev]++; k.nodes[dev] != 1 {
		k.blame("device %d opened %d times at once", dev, k.nodes[dev])
	}
	return &node{k: k, dev: dev}, nil
}

type node struct {
	k   *kernel
	dev int
}

func (d *node) Map(addr core.DevAddr, n uint64) (core.HostAddr, error) {
	k := d.k
	k.pause()
	if startsAt(addr, pageNoMap) {
		return 0, syscall.ENOMEM
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range k.maps {
		if m.dev == d.dev && m.pinned && addr < m.addr+core.DevAddr(m.n) && m.addr < addr+core.DevAddr(n) {
			k.blame("device %d: MAP of [%#x, +%#x) while [%#x, +%#x) is pinned", d.dev, addr, n, m.addr, m.n)
		}
	}
	m := &mapping{dev: d.dev, addr: addr, host: k.next, n: n, pinned: true}
	k.next += core.HostAddr(n) + page // never used again, and nothing is adjacent
	k.maps[m.host] = m
	return m.host, nil
}

// at is the mapping that an UNMAP or munmap means; nil: there is none.
func (d *node) at(call string, host core.HostAddr, n uint64) *mapping {
	m := d.k.maps[host]
	if m == nil || m.n != n || m.dev != d.dev {
		d.k.blame("device %d: %s of %#x, +%#x: not mapped there", d.dev, call, host, n)
		return nil
	}
	if m.users != 0 {
		d.k.blame("device %d: %s of %#x with %d transfers inside", d.dev, call, m.addr, m.users)
	}
	return m
}

func (d *node) Unmap(addr core.DevAddr, host core.HostAddr, n uint64) error {
	k := d.k
	k.pause()
	k.mu.Lock()
	defer k.mu.Unlock()
	m := d.at("UNMAP", host, n)
	if m == nil {
		return syscall.EINVAL
	}
	if m.addr != addr || !m.pinned {
		k.blame("device %d: UNMAP of %#x for [%#x, +%#x), pinned %v", d.dev, addr, m.addr, m.n, m.pinned)
	}
	if startsAt(addr, pageLateUnmap) && m.unmaps == 0 {
		m.unmaps++
		return syscall.EIO
	}
	m.pinned = false
	return nil
}

func (d *node) Munmap(host core.HostAddr, n uint64) error {
	k := d.k
	k.pause()
	k.mu.Lock()
	defer k.mu.Unlock()
	m := d.at("munmap", host, n)
	if m == nil {
		return syscall.EINVAL
	}
	if m.pinned && m.unmaps == 0 {
		k.blame("device %d: munmap of %#x before UNMAP", d.dev, m.addr)
	}
	if startsAt(m.addr, pageLateMunmap) && m.munmaps == 0 {
		m.munmaps++
		return syscall.ENOMEM
	}
	delete(k.maps, host)
	return nil
}

func (d *node) FD() int { return 1 << 20 }

func (d *node) Close() error {
	k := d.k
	k.pause()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nodes[d.dev]--; k.nodes[d.dev] != 0 {
		k.blame("device %d closed, %d left", d.dev, k.nodes[d.dev])
	}
	for host, m := range k.maps {
		if m.dev != d.dev {
			continue
		}
		if m.munmaps == 0 {
			k.blame("device %d closed with [%#x, +%#x) mapped", d.dev, m.addr, m.n)
		}
		delete(k.maps, host) // its munmap failed in the last close: lost
	}
	return nil
}
