package core

import (
	"errors"
	"fmt"
	"syscall"

	"libphoenix/connectors"
)

// Mode is what the user wants of the way to device memory (PHXFS_MODE).
type Mode uint8

const (
	ModeFull        Mode = iota // through device nodes; never anything else
	ModeHostStaging             // through copies (package staging)
	ModeAuto                    // full where a node can be opened, else host staging
)

// reach is how this process gets at device memory, all of it. ModeAuto decides
// at the first Open or FindDevice that succeeds either way.
type reach int32

const (
	reachUndecided reach = iota
	reachNode            // mapped by the kernel module
	reachEmbedded        // it is this process's own
	reachStaged
)

// Map modes, as phxfs_get_map_mode returns them (docs/abi.md). 1 is the kernel
// module's device staging, which it does not announce.
const (
	MapFull        = 0
	MapHostStaging = 2
)

func (l *Library) reach() reach { return reach(l.reached.Load()) }

// setUpReach decides what needs no look at the machine. What the vendor or the
// build cannot do fails at Open.
func (l *Library) setUpReach(m Mode) {
	l.stage, _ = l.conn.(connectors.Stager)
	_, embedded := l.conn.(connectors.Embedded)
	switch {
	case m == ModeHostStaging:
		l.decide(reachStaged, "")
	case embedded:
		l.decide(reachEmbedded, "")
	case m == ModeFull:
		l.decide(reachNode, "")
	}
}

// inheritReach is for a forked child: its memory is reached as its parent's is,
// whatever the environment says by now.
func (l *Library) inheritReach(pins []*Pin) {
	if _, embedded := l.conn.(connectors.Embedded); embedded || len(pins) == 0 {
		return
	}
	if pins[0].State == PinMapped {
		l.reached.Store(int32(reachNode))
	} else {
		l.reached.Store(int32(reachStaged))
	}
}

// decide is told what is possible, and answers what was decided, which may be
// another thread's finding. why, if any, is for the log.
func (l *Library) decide(found reach, why string) reach {
	if l.reached.CompareAndSwap(int32(reachUndecided), int32(found)) && why != "" && l.logs(LevelInfo) {
		l.log.Event(Event{Level: LevelInfo, Call: "PHXFS_MODE", Device: -1, FD: -1, Reason: why})
	}
	return l.reach()
}

// openDevice opens device id the way this process reaches devices, and decides
// on that way if nobody has.
func (l *Library) openDevice(id int) (Node, error) {
	if l.reach() == reachStaged {
		return l.openStaged(id)
	}
	node, err := l.openNode(l.devDir, id)
	if l.reach() != reachUndecided && l.reach() != reachStaged {
		return node, err
	}
	if err == nil {
		if l.decide(reachNode, "auto: a device node can be opened: full") != reachStaged {
			return node, nil
		}
		_ = node.Close() // another thread has found no node, and nothing was mapped through this one
	} else if passing(err) {
		return nil, err
	}
	staged, missing := l.openStaged(id)
	if missing != nil {
		return nil, fmt.Errorf("%w (nor is there a device node: %v)", missing, err)
	}
	if l.decide(reachStaged, "auto: no device node can be opened: host staging") == reachStaged {
		return staged, nil
	}
	_ = staged.Close() // another thread has opened a node meanwhile
	return l.openNode(l.devDir, id)
}

// passing is an errno of open(2) that says nothing about the device.
func passing(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN, syscall.EBUSY} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// findDevice is FindDevice of the connector, or in staging, where devices have
// the numbers that their vendor gives them, the ordinal itself.
func (l *Library) findDevice(ordinal int) (int, error) {
	if l.reach() == reachStaged {
		return l.findStaged(ordinal)
	}
	index, err := l.conn.FindDevice(ordinal)
	if l.reach() != reachUndecided && l.reach() != reachStaged {
		return index, err
	}
	var unopened error
	if err == nil {
		var node Node
		if node, unopened = l.openNode(l.devDir, index); unopened == nil {
			_ = node.Close() // nothing was mapped through it
			if l.decide(reachNode, "auto: a device node can be opened: full") == reachNode {
				return index, nil
			}
		} else if passing(unopened) {
			return 0, unopened
		}
	}
	staged, missing := l.findStaged(ordinal)
	if missing != nil {
		return 0, missing
	}
	if l.decide(reachStaged, "auto: no device node can be opened: host staging") == reachStaged {
		return staged, nil
	}
	return l.conn.FindDevice(ordinal)
}

// MapMode is MapFull or MapHostStaging.
//
// Errors: EINVAL bad id; ENODEV not open.
func (l *Library) MapMode(id int) (int, error) {
	d, bad := l.device(id)
	if bad != nil {
		return 0, bad
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.state != deviceOpen {
		return 0, errNotOpen
	}
	if l.reach() == reachStaged {
		return MapHostStaging, nil
	}
	return MapFull, nil
}
