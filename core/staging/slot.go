package staging

import (
	"sync/atomic"
	"syscall"
	"time"

	"libphoenix/connectors"
	"libphoenix/engine"
	"libphoenix/internal/futex"
)

// job is what a slot asks of a lane.
type job uint8

const (
	toDevice   job = iota
	fromDevice     // copy
	furnish        // get memory
	release        // give it back
	stop           // the lane ends
)

// Values of slot.word.
const (
	idle     = iota // no job, or the last one is over
	asked           // a lane has it
	sleeping        // likewise, and the owner waits in the kernel
)

// slot is host memory and one job at a time. It implements engine.Slot.
type slot struct {
	d     *Device       // set by New, then read-only; nil in a lane's own
	index uint32        // in Device.slots; likewise
	below atomic.Uint32 // index+1 of the next slot on a stack; 0: none

	word atomic.Uint32

	// The lane's while word is not idle, else the owner's.
	mem   uintptr // 0: bare
	id    uint64  // the vendor's identity of mem, if known
	known bool
	epoch uint32 // Device.lost when mem was got
	home  *lane  // that gave mem
	job   job
	dev   engine.HostAddr // device address
	len   uint64          // bytes
	errno syscall.Errno   // of the last job
	next  *slot           // in an inbox or a lane's queue
}

// Place implements engine.Slot.
func (s *slot) Place(at engine.HostAddr) engine.HostAddr {
	return engine.HostAddr(s.mem) + at%pageBytes
}

// Start implements engine.Slot.
func (s *slot) Start(k engine.Kind, at engine.HostAddr, n uint64) {
	s.dev, s.len = at, n
	if k == engine.Read {
		s.ask(s.d.lane(), toDevice)
	} else {
		s.ask(s.d.lane(), fromDevice)
	}
}

// Release implements engine.Slot.
func (s *slot) Release() {
	d := s.d
	d.free.push(d.slots, s.index)
	d.letLook(1)
}

// furnish gets memory for a bare slot.
func (s *slot) furnish() syscall.Errno {
	l := s.d.lane()
	s.home = l
	s.ask(l, furnish)
	return s.Wait()
}

// note remembers which memory the slot has, if the vendor can tell.
func (s *slot) note() {
	s.known = false
	if s.d.life != nil {
		id, state := s.d.life.Identity(connectors.DevAddr(s.mem), slotBytes)
		s.id, s.known = id, state == connectors.LifeKnown
	}
}

// alive is false once the driver has taken the memory away, with the context
// that it belonged to: whatever lies there now is not ours.
func (s *slot) alive() bool {
	if !s.known {
		return true
	}
	id, state := s.d.life.Identity(connectors.DevAddr(s.mem), slotBytes)
	return id == s.id && state == connectors.LifeKnown
}

// drop makes the slot bare without giving its memory back.
func (s *slot) drop() {
	s.mem, s.known = 0, false
	s.d.lost.CompareAndSwap(s.epoch, s.epoch+1)
}

// ask gives the slot with a job to l, which was chosen by Device.lane or is the
// only one that can do it.
func (s *slot) ask(l *lane, j job) {
	s.job = j
	s.word.Store(asked)
	l.put(s)
}

// Wait implements engine.Slot. Without a job under way it returns at once.
func (s *slot) Wait() syscall.Errno {
	if s.word.Load() != idle && s.d.spin > 0 {
		spin(s.d.spin, func() bool { return s.word.Load() == idle })
	}
	for s.word.CompareAndSwap(asked, sleeping) || s.word.Load() == sleeping {
		futex.Wait(&s.word, sleeping)
	}
	return s.errno
}

// end is the lane's last touch of the slot: from here on it may be in use
// again. The wake-up only names an address.
func (s *slot) end(errno syscall.Errno) {
	s.errno = errno
	if s.word.Swap(idle) == sleeping {
		futex.Wake(&s.word, 1)
	}
}

// spin returns when done holds or the time is over.
func spin(most time.Duration, done func() bool) {
	const looks = 100 // between two readings of the clock
	for begin := time.Now(); ; {
		for range looks {
			if done() {
				return
			}
		}
		if time.Since(begin) > most {
			return
		}
	}
}

// stack is a stack of slots: index+1 of the top in the low half, in the high
// half a count of changes, so that a top that was taken and put back is not
// mistaken for an untouched one.
type stack struct{ head atomic.Uint64 }

const stackChange = 1 << 32

func (st *stack) push(slots []slot, index uint32) {
	for {
		head := st.head.Load()
		slots[index].below.Store(uint32(head))
		if st.head.CompareAndSwap(head, (head&^(stackChange-1)+stackChange)|uint64(index+1)) {
			return
		}
	}
}

func (st *stack) pop(slots []slot) *slot {
	for {
		head := st.head.Load()
		if uint32(head) == 0 {
			return nil
		}
		s := &slots[uint32(head)-1]
		if st.head.CompareAndSwap(head, (head&^(stackChange-1)+stackChange)|uint64(s.below.Load())) {
			return s
		}
	}
}
