package staging

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"libphoenix/connectors"
	"libphoenix/engine"
	"libphoenix/internal/futex"
)

const (
	pageBytes = 4096
	slotBytes = engine.StageBytes + pageBytes // a piece may begin anywhere in a page

	// DefaultBytes is the budget of a device if nobody says otherwise.
	DefaultBytes = 256 << 20

	// Threads is how many a Device starts at most.
	Threads = lanes
	lanes   = 4

	// copySpin is how long a lane asks for the end of a copy before it waits in
	// the driver, where it would not see new jobs: some copies' time.
	copySpin = 200 * time.Microsecond
	// longestSpin is how long a lane without work looks for some before it
	// sleeps, and a thread for the end of its copy: less than a wake-up costs.
	longestSpin = 20 * time.Microsecond
	// spinCores is how many cores it takes for that to harm nobody.
	spinCores = 4
)

// Config is what a Device is made from.
type Config struct {
	Stager  connectors.Stager
	Ordinal int                 // the vendor's number of the device
	Bytes   uint64              // host memory, at most; at least one slot is used. 0: DefaultBytes
	Notice  func(reason string) // told about a contained panic; nil: dropped
}

// Device stages the transfers of one device.
type Device struct {
	cfg   Config              // set by New, then read-only
	life  connectors.Liveness // likewise; nil: memory of slots does not go away
	spin  time.Duration       // likewise
	lanes [lanes]lane
	slots []slot // made by New; each slot says whose it is

	free stack // slots with memory
	bare stack // slots without

	// lost counts how often the driver has taken the memory of slots away (the
	// program has reset the device). A stream made before is of no use either.
	lost atomic.Uint32

	// have is how many slots have memory; before Close it shrinks only by memory
	// that was lost. Once growing failed with some there, stopped is set and
	// they have to do.
	have    atomic.Int32
	growing atomic.Int32 // threads that ask for memory; counted out after have is counted up
	stopped atomic.Bool

	// Threads that wait for a slot count in waiting and sleep on turn, which
	// changes whenever one of them should look again.
	waiting atomic.Int32
	turn    atomic.Uint32

	running sync.WaitGroup // lanes' threads
}

// New makes a Device. It starts nothing and asks the vendor nothing.
func New(cfg Config) *Device {
	if cfg.Bytes == 0 {
		cfg.Bytes = DefaultBytes
	}
	d := &Device{cfg: cfg, slots: make([]slot, max(1, cfg.Bytes/slotBytes))}
	d.life, _ = cfg.Stager.(connectors.Liveness)
	if runtime.NumCPU() >= spinCores {
		d.spin = longestSpin
	}
	for i := range d.lanes {
		d.lanes[i].d = d
	}
	for i := len(d.slots) - 1; i >= 0; i-- {
		s := &d.slots[i]
		s.d, s.index = d, uint32(i)
		s.word.Store(idle)
		d.bare.push(d.slots, uint32(i))
	}
	return d
}

// Slot lends a slot with memory. If none can be had it waits for one to come
// back, or with wait unset answers nil and 0. A thread that holds a slot of the
// device must not wait. ENOMEM, ENODEV: no slot has memory and none can get any.
func (d *Device) Slot(wait bool) (engine.Slot, syscall.Errno) {
	s, errno := d.try()
	if s == nil && errno == 0 && wait {
		s, errno = d.await()
	}
	if s == nil {
		return nil, errno
	}
	return s, 0
}

// try takes a free slot or makes one; nil and 0: others have them all.
func (d *Device) try() (*slot, syscall.Errno) {
	for s := d.free.pop(d.slots); s != nil; s = d.free.pop(d.slots) {
		if s.alive() {
			return s, 0
		}
		s.drop()
		d.have.Add(-1)
		d.stopped.Store(false)
		d.bare.push(d.slots, s.index)
		d.letLook(1)
	}
	if d.stopped.Load() {
		return nil, 0
	}
	s := d.bare.pop(d.slots)
	if s == nil {
		return nil, 0
	}
	d.growing.Add(1)
	errno := s.furnish()
	if errno == 0 {
		d.have.Add(1)
		d.growing.Add(-1)
		return s, 0
	}
	d.bare.push(d.slots, s.index)
	switch others := d.growing.Add(-1); {
	case d.have.Load() > 0:
		d.stopped.Store(true)
		if d.have.Load() == 0 { // lost meanwhile: stopped would be for ever
			d.stopped.Store(false)
		}
		errno = 0
	case others > 0: // they get memory, or the last of them fails
		errno = 0
	}
	d.letLook(len(d.slots)) // they may have waited for this slot, which was all there was to wait for
	return nil, errno
}

func (d *Device) await() (s *slot, errno syscall.Errno) {
	d.waiting.Add(1)
	defer d.waiting.Add(-1)
	for {
		turn := d.turn.Load()
		if s, errno = d.try(); s != nil || errno != 0 {
			return s, errno
		}
		futex.Wait(&d.turn, turn)
	}
}

// letLook wakes up to n threads that wait for a slot.
func (d *Device) letLook(n int) {
	if d.waiting.Load() > 0 {
		d.turn.Add(1)
		futex.Wake(&d.turn, n)
	}
}

// lane chooses who carries out the next job.
func (d *Device) lane() *lane {
	best := &d.lanes[0]
	least := best.load.Load()
	for i := 1; i < lanes && least > 0; i++ {
		if l := &d.lanes[i]; l.load.Load() < least {
			best, least = l, l.load.Load()
		}
	}
	return best
}

// Bytes is how much host memory the device has now.
func (d *Device) Bytes() uint64 { return uint64(d.have.Load()) * slotBytes }

// Close returns the memory and ends the threads. No slot is taken, and no call
// is inside or follows.
func (d *Device) Close() {
	for i := range d.slots {
		if s := &d.slots[i]; s.mem != 0 {
			s.ask(s.home, release)
			s.Wait()
		}
	}
	for i := range d.lanes {
		if l := &d.lanes[i]; l.started.Load() {
			l.stop.ask(l, stop)
		}
	}
	d.running.Wait()
}
