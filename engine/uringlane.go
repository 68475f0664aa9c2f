package engine

import (
	"runtime"
	"syscall"

	"libphoenix/internal/uring"
)

// uringLane carries out batches on one ring. It keeps a window of transfers
// going: what it claims it queues, submits in one system call, and refills as
// completions come (uringfill.go, uringreap.go). A ring that fails is drained
// and dropped (uringbreak.go), and the lane goes on with plain system calls.
type uringLane struct {
	// Set by newLane, then read-only.
	t     *uringTransport
	owned bool        // a helper's: one thread for ever
	place *callerRing // of a caller's lane

	// The owner thread's.
	ring    *uring.Ring // nil: none
	holds   bool        // ring counts in t.helperFDs
	why     error       // why ring is nil
	slots   []slot      // one for each entry of ring
	free    uint32      // first free slot
	again   uint32      // first slot to be issued again
	used    uint32      // slots not free
	vectors bool        // this kernel has no plain read and write (before 5.6)
	proven  bool        // a transfer has succeeded on ring: its opcodes are known
	stall   stall

	// Of the running batch.
	b    *Batch
	todo claim // claimed, not yet in a slot nor settled
	fd   int32 // the last one that was asked about; -1: none
	row  bool  // it holds bytes in a row
}

// slot is a unit in the window: queued, in flight, or to be issued again. Its
// index is the id of its request.
type slot struct {
	at     uint64 // the unit
	moved  uint64 // bytes of it that are done
	next   uint32 // of its list; nobody's while the ring has the request
	busy   bool   // not free
	vector bool   // issued as readv or writev
}

const noSlot = ^uint32(0)

func (t *uringTransport) newLane(owned bool) *uringLane {
	return &uringLane{t: t, owned: owned, why: syscall.ENODEV}
}

// attached reports whether the lane has a ring, after trying to make one if
// that is due.
func (l *uringLane) attached() bool {
	if l.ring != nil {
		return true
	}
	if !l.t.mayOpen() {
		return false
	}
	switch err := l.open(); err {
	case nil:
		return true
	case errNoRoom: // no trouble, and no wonder with that many helpers
	default:
		l.t.trouble(err, 1)
	}
	return false
}

// errNoRoom: another helper's ring would make more fds than allowed.
const errNoRoom = syscall.EMFILE

// open makes the lane's ring.
func (l *uringLane) open() error {
	if l.owned {
		return l.openOwned()
	}
	r, err := uring.Open(l.t.kernel, uring.Options{Entries: l.t.depth})
	return l.adopt(r, err)
}

// openOwned makes a helper's ring, which may hold an fd only if the callers'
// rings leave one.
func (l *uringLane) openOwned() error {
	t := l.t
	t.opening.Lock()
	defer t.opening.Unlock()
	if t.helperFDs >= maxRingFDs-t.most {
		return errNoRoom
	}
	r, err := uring.Open(t.kernel, uring.Options{Entries: t.depth, Owned: true})
	if err == nil && r.HoldsFD() {
		l.holds = true
		t.helperFDs++
	}
	return l.adopt(r, err)
}

func (l *uringLane) adopt(r *uring.Ring, err error) error {
	if l.why = err; err != nil {
		return err
	}
	l.ring, l.stall, l.proven = r, stall{}, false
	if len(l.slots) != r.Entries() {
		l.slots = make([]slot, r.Entries())
	}
	l.free, l.again, l.used = 0, noSlot, 0
	for i := range l.slots {
		l.slots[i] = slot{next: uint32(i) + 1}
	}
	l.slots[len(l.slots)-1].next = noSlot
	return nil
}

// drop ends the lane's ring, which is empty.
func (l *uringLane) drop() {
	if l.ring == nil {
		return
	}
	l.ring.Close()
	l.ring = nil
	if l.holds {
		l.holds = false
		l.t.opening.Lock()
		l.t.helperFDs--
		l.t.opening.Unlock()
	}
}

// run implements lane.
func (l *uringLane) run(b *Batch) {
	if !l.attached() {
		l.t.plain.run(b)
		return
	}
	// One thread submits and takes completions throughout: the kernel finishes
	// a request in the context of the thread that submitted it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.b, l.todo = b, claim{}
	l.fd, l.row = -1, false
	var errno syscall.Errno
	whole := l.guard(func() { errno = l.pump() })
	if !whole || errno != 0 {
		l.breakDown(errno, !whole)
		l.t.plain.run(b)
	}
	l.b = nil
}

// pump does all that is left of the batch. An errno says that the ring failed.
func (l *uringLane) pump() syscall.Errno {
	for {
		more := l.fill()
		if l.used == 0 {
			if !more {
				return 0
			}
			continue
		}
		if errno := l.enter(l.target(more)); errno != 0 {
			return errno
		}
		l.reap()
	}
}

// target is for how many completions to wait. While there is more to claim the
// window is kept full: a quarter of it is worth a refill. Only the end of a
// batch waits for all.
func (l *uringLane) target(more bool) uint32 {
	switch {
	case !more:
		return l.used
	case l.free == noSlot:
		return max(1, uint32(len(l.slots))/4)
	default:
		return 0
	}
}
