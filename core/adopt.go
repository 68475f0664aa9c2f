package core

import (
	"sync/atomic"
)

// Heritage is what a forked child finds of its parent's library.
type Heritage struct {
	Opens [Devices]int // phxfs_open calls not yet matched
	Pins  []*Pin       // whose State is PinMapped or PinEmbedded
}

// Adopt makes a parent's devices and registrations usable in a forked child:
// they are borrowed. I/O goes through the mappings that fork has copied;
// deregmem and close drop them without UNMAP, munmap or close, which are the
// parent's to do. What the parent was making or taking down when it forked is
// left out. Adopt comes before any other call of a fresh Library.
func (l *Library) Adopt(h Heritage) {
	l.inheritReach(h.Pins)
	for i := range l.devices {
		d := &l.devices[i]
		if h.Opens[i] == 0 {
			continue
		}
		d.state, d.opens = deviceOpen, h.Opens[i]
		if l.reach() == reachEmbedded {
			d.node, _ = l.openNode(l.devDir, i)
		} else {
			d.node = &borrowedNode{open: func() (Node, error) { return l.openDevice(i) }}
		}
	}
	for _, p := range h.Pins {
		if p.Device < 0 || p.Device >= Devices || p.Gate.Closed() {
			continue
		}
		if d := &l.devices[p.Device]; d.state == deviceOpen {
			l.adoptPin(d, p)
		}
	}
}

func (l *Library) adoptPin(d *device, p *Pin) {
	r := l.regs.take()
	if r == nil {
		return // the table's limit is far above the parent's own
	}
	r.pin, r.borrowed = p, true
	r.dev, r.addr, r.lenBytes = d, DevAddr(p.Addr), p.Len
	r.host, r.refs, r.state = HostAddr(p.Host), p.Refs, regLive
	d.ranges.insert(r)
}

// borrowedNode is a device that the parent has open. The child opens one of
// its own at the first need.
type borrowedNode struct {
	open func() (Node, error) // set by Adopt, then read-only
	mine atomic.Pointer[Node] // nil until then
}

// own is the child's own node, opened now if need be.
func (n *borrowedNode) own() (Node, error) {
	if mine := n.mine.Load(); mine != nil {
		return *mine, nil
	}
	opened, err := n.open()
	if err != nil {
		return nil, err
	}
	if !n.mine.CompareAndSwap(nil, &opened) {
		_ = opened.Close() // another thread was first; nothing was mapped through this one
	}
	return *n.mine.Load(), nil
}

// Map maps through the child's own node.
func (n *borrowedNode) Map(addr DevAddr, lenBytes uint64) (HostAddr, error) {
	mine, err := n.own()
	if err != nil {
		return 0, err
	}
	return mine.Map(addr, lenBytes)
}

// Unmap is for what the child has mapped itself.
func (n *borrowedNode) Unmap(addr DevAddr, host HostAddr, lenBytes uint64) error {
	mine, err := n.own()
	if err != nil {
		return err
	}
	return mine.Unmap(addr, host, lenBytes)
}

// Munmap is for what the child has mapped itself.
func (n *borrowedNode) Munmap(host HostAddr, lenBytes uint64) error {
	mine, err := n.own()
	if err != nil {
		return err
	}
	return mine.Munmap(host, lenBytes)
}

// FD is the descriptor of the child's own node.
func (n *borrowedNode) FD() int {
	mine, err := n.own()
	if err != nil {
		return -1
	}
	return mine.FD()
}

// Close closes the child's own node, if there is one.
func (n *borrowedNode) Close() error {
	if mine := n.mine.Load(); mine != nil {
		return (*mine).Close()
	}
	return nil
}
