package core

import (
	"sync"
	"sync/atomic"

	"libphoenix/connectors"
	"libphoenix/engine"
)

// Config is what a Library is built from. All of it is borrowed for as long as
// the library lives.
type Config struct {
	Connector connectors.Connector

	// DevDir is the folder of the device nodes; empty: /dev.
	DevDir string
	// OpenNode opens a device node; nil: the kernel module's. It is not
	// called for an embedded connector.
	OpenNode func(dir string, index int) (Node, error)
	// NewEngine makes the engine, once, at the first call that needs it.
	NewEngine func() engine.Engine
	// IO carries single transfers; nil: the kernel.
	IO engine.IO
	// Ledger keeps the Pins; nil: a private one in mapped memory.
	Ledger Ledger
	// Log takes events; nil: nobody listens.
	Log Logger
	// CollectorOff: the garbage collector should never run, and one event
	// tells if it does.
	CollectorOff bool
	// Room says whether so many threads can be started, besides the engine's
	// helpers; nil: always.
	Room func(threads int) bool
	// Mode says how device memory is reached.
	Mode Mode
	// StagingBytes is the host memory that staging one device may take; 0:
	// staging.DefaultBytes.
	StagingBytes uint64
}

// Library is the whole library of one process. Its methods may be called from
// any thread.
type Library struct {
	// Set by New, then read-only.
	conn      connectors.Connector
	life      connectors.Liveness // nil: the connector cannot tell
	devDir    string
	openNode  func(dir string, index int) (Node, error)
	newEngine func() engine.Engine
	ledger    Ledger
	log       Logger    // nil: silent
	io        engine.IO // of single transfers
	errs      errorTable
	valve     *valve              // nil: the collector may run
	leaveDone func(*engine.Batch) // asyncDone, made once
	stage     connectors.Stager   // nil: the connector cannot be staged
	stageSize uint64              // Config.StagingBytes
	room      func(int) bool      // Config.Room
	slots     engine.Stager       // of batches of staged devices; made once

	reached atomic.Int32 // a reach; changes once, from reachUndecided
	staged  atomic.Int32 // devices that are open or being opened for staging
	devices [Devices]device
	found   ordinals
	regs    slab[registration]
	batches slab[batch]
	arrays  opArrays

	engMu sync.Mutex                    // held while the engine is made, so that it is made once
	eng   atomic.Pointer[engine.Engine] // nil until the first call that needs it, then read-only
}

// New makes a library. It starts nothing and opens nothing.
func New(c Config) *Library {
	l := &Library{
		conn:      c.Connector,
		devDir:    c.DevDir,
		openNode:  c.OpenNode,
		newEngine: c.NewEngine,
		ledger:    c.Ledger,
		log:       c.Log,
		io:        c.IO,
		stageSize: c.StagingBytes,
		room:      c.Room,
	}
	if l.io == nil {
		l.io = engine.Kernel()
	}
	l.errs.fill()
	if c.CollectorOff {
		l.valve = newValve()
	}
	l.life, _ = c.Connector.(connectors.Liveness)
	if l.devDir == "" {
		l.devDir = "/dev"
	}
	if l.openNode == nil {
		l.openNode = openDeviceNode
	}
	if embedded, ok := c.Connector.(connectors.Embedded); ok {
		node := Node(embeddedNode{embedded})
		l.openNode = func(string, int) (Node, error) { return node, nil }
	}
	l.setUpReach(c.Mode)
	if l.ledger == nil {
		l.ledger = new(pinLedger)
	}
	for i := range l.devices {
		d := &l.devices[i]
		d.id, d.changed.L = int32(i), &d.mu
	}
	l.regs.init = func(i uint32, r *registration) { r.slot = i }
	l.batches.init = func(i uint32, b *batch) { b.index = i }
	l.arrays.setUp()
	l.leaveDone = l.asyncDone
	l.slots = slots{l}
	return l
}

// engine is the engine, made now if this is the first call that needs it.
func (l *Library) engine() engine.Engine {
	if e := l.eng.Load(); e != nil {
		return *e
	}
	l.engMu.Lock()
	defer l.engMu.Unlock()
	if e := l.eng.Load(); e != nil {
		return *e
	}
	e := l.newEngine()
	l.eng.Store(&e)
	return e
}

// EngineName is "sync" or "io_uring". It chooses the engine if no call has.
func (l *Library) EngineName() string { return l.engine().Name() }

// AsyncInFlight is how many async batches have I/O queued or running.
func (l *Library) AsyncInFlight() int {
	if e := l.eng.Load(); e != nil {
		return (*e).AsyncInFlight()
	}
	return 0
}

// PageSize is the alignment in bytes that registrations need.
func (l *Library) PageSize() uint64 { return l.conn.PageSize() }

// Shutdown closes every device as the last close does, ends the engine's
// helpers and returns all memory; for tests and tools. Handles end with it, no
// other call may be inside or follow.
func (l *Library) Shutdown() {
	for i := range l.devices {
		d := &l.devices[i]
		d.mu.Lock()
		if d.state == deviceOpen {
			_ = l.closeLast(d) // logged by whoever failed; nobody is left to tell
		} else {
			d.mu.Unlock()
		}
	}
	if e := l.eng.Load(); e != nil {
		(*e).Close()
	}
	l.batches.each(func(b *batch) { l.arrays.give(b) })
	l.arrays.unmapFree()
	l.regs.each(func(r *registration) {
		if r.pin != nil {
			l.ledger.Give(r.pin)
			r.pin = nil
		}
	})
	if own, ok := l.ledger.(*pinLedger); ok {
		own.unmapAll()
	}
}
