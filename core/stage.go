package core

import (
	"fmt"
	"syscall"

	"libphoenix/core/staging"
	"libphoenix/engine"
)

// stagedNode is a device whose memory is reached by copies. Registered memory
// is used where it lies; nothing is pinned and nothing is due for it.
type stagedNode struct {
	*staging.Device
	lib *Library
	id  int
}

// openStaged fails if the vendor does not know the device. It creates nothing
// on it: that is left to the first transfer. EAGAIN: there is no room for the
// threads of all devices open so far; transfers, which start them, could only
// wait for it.
func (l *Library) openStaged(id int) (Node, error) {
	if _, err := l.findStaged(id); err != nil {
		return nil, err
	}
	threads := int(l.staged.Add(1)) * staging.Threads
	if l.room != nil && !l.room(threads) {
		l.staged.Add(-1)
		return nil, fmt.Errorf("no room for %d threads (pids.max, RLIMIT_NPROC): %w", threads, syscall.EAGAIN)
	}
	return stagedNode{l.newStaging(id), l, id}, nil
}

func (l *Library) newStaging(id int) *staging.Device {
	return staging.New(staging.Config{Stager: l.stage, Ordinal: id, Bytes: l.stageSize, Notice: func(reason string) {
		l.tellDevice(LevelWarn, "staging", int32(id), reason)
	}})
}

func (l *Library) findStaged(ordinal int) (int, error) {
	switch {
	case l.stage == nil:
		return 0, fmt.Errorf("%s has no host staging: %w", l.conn.Name(), syscall.ENODEV)
	case ordinal >= Devices:
		return 0, fmt.Errorf("device %d of 0..%d: %w", ordinal, Devices-1, syscall.ENODEV)
	}
	return ordinal, l.stage.StageDevice(ordinal)
}

func (n stagedNode) Map(addr DevAddr, lenBytes uint64) (HostAddr, error) {
	if err := n.lib.stage.CheckMemory(n.id, addr, lenBytes); err != nil {
		return 0, err
	}
	return HostAddr(addr), nil
}

func (stagedNode) Unmap(DevAddr, HostAddr, uint64) error { return nil }
func (stagedNode) Munmap(HostAddr, uint64) error         { return nil }
func (stagedNode) FD() int                               { return -1 }

// Close gives back what the transfers have needed.
func (n stagedNode) Close() error {
	n.Device.Close()
	n.lib.staged.Add(-1)
	return nil
}

// stager is the Batch.Stager of this process; nil: device memory is mapped.
func (l *Library) stager() engine.Stager {
	if l.reach() == reachStaged {
		return l.slots
	}
	return nil
}

// slots lends the slots of the device that a group belongs to. The gate of the
// group is held, so its device stays open.
type slots struct{ l *Library }

// Slot implements engine.Stager.
func (s slots) Slot(group uint32, wait bool) (engine.Slot, syscall.Errno) {
	switch node := s.l.regs.at(group - 1).dev.node.(type) {
	case stagedNode:
		return node.Slot(wait)
	case *borrowedNode:
		mine, err := node.own()
		if err != nil {
			s.l.tellDevice(LevelError, "staging", s.l.regs.at(group-1).dev.id, err.Error())
			return nil, errnoOf(err)
		}
		return mine.(stagedNode).Slot(wait)
	}
	return nil, syscall.ENODEV
}

// moveStaged is move for memory that only copies reach. Like move it is not
// ordered against batches, but helpers may take part.
func (l *Library) moveStaged(k engine.Kind, fd int32, addr HostAddr, n uint64, off int64, group uint32) (int64, syscall.Errno) {
	eng := l.engine()
	b := l.takeBatch(transferCalls[k])
	if b == nil {
		return 0, syscall.ENOMEM
	}
	defer l.giveBatch(b)
	l.arrays.take(b, 1) // within the batch itself: cannot fail
	eng.Begin(&b.Batch, engine.Unordered)
	b.Kind, b.Stager = k, l.stager()
	b.Ops = append(b.Ops, engine.Op{Addr: addr, Len: n, Off: off, FD: fd, Group: group})
	eng.Run(&b.Batch)
	if r := b.Ops[0].Result; r < 0 {
		return 0, syscall.Errno(-r)
	} else {
		return r, 0
	}
}
