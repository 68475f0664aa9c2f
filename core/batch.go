package core

import (
	"sync/atomic"
	"syscall"

	"libphoenix/engine"
)

// smallOps is how many ops a batch holds without an op array.
const smallOps = 8

// batch is one batch, sync or async. It is an entry of Library.batches, where
// it is used again for a later batch; fields without a note belong to the call
// that took it and, between submit and wait, to nobody.
type batch struct {
	engine.Batch        // Ops: the resolvable requests, in the caller's order
	index        uint32 // set by the slab, then read-only

	call       string    // the C function, for events
	reqs       []Request // async only: the caller's array, borrowed until wait
	unresolved int       // requests without an op
	array      *opArray  // room of Ops; nil: small
	small      [smallOps]engine.Op

	generation uint32        // handles made of this entry
	live       atomic.Uint64 // the Handle that stands for it now; 0: none. Taken by whoever waits or destroys, with one compare-and-swap
}

// takeBatch returns a batch that owns nothing; nil: memory is out.
func (l *Library) takeBatch(call string) *batch {
	b := l.batches.take()
	if b != nil {
		b.call, b.unresolved = call, 0
	}
	return b
}

// giveBatch returns the batch and its room to the pools.
func (l *Library) giveBatch(b *batch) {
	l.arrays.give(b)
	b.reqs, b.Done, b.Stager = nil, nil, nil
	l.batches.give(b.index)
}

// Run carries out a batch and returns how many of its requests failed: those
// whose Result is not their Len. reqs is read once, and each Result written
// once, at the end. It waits for earlier batches (docs/abi.md, "Order").
//
// Errors: ENOMEM; no Result is written then.
func (l *Library) Run(k engine.Kind, reqs []Request) (failed int, err error) {
	eng := l.engine()
	b := l.takeBatch(runCalls[k])
	if b == nil {
		return 0, errNoMemory
	}
	defer l.giveBatch(b)
	eng.Begin(&b.Batch, engine.Sync)
	b.Kind = k
	if !l.perform(eng, reqs, b) {
		return 0, errNoMemory
	}
	if b.unresolved > 0 {
		writeUnresolved(reqs, b.Ops)
	}
	return b.unresolved + writeResults(reqs, b.Ops), nil
}

// perform resolves a begun sync batch and does its I/O; false: memory is out.
// It retires the ticket and leaves every gate however it ends.
func (l *Library) perform(eng engine.Engine, reqs []Request, b *batch) bool {
	begun := true
	defer func() {
		if begun {
			eng.Abandon(&b.Batch)
		}
		l.leaveGates(b.Ops)
	}()
	if !l.arrays.take(b, len(reqs)) {
		return false
	}
	l.resolve(reqs, b)
	if len(b.Ops) > 0 {
		begun = false
		eng.Run(&b.Batch)
		l.tellFailures(b.call, b.Ops)
	}
	return true
}

// writeUnresolved writes the Result of the requests that have no op. Ops are
// in the order of their requests.
func writeUnresolved(reqs []Request, ops []engine.Op) {
	next := 0
	for i := range ops {
		for at := int(ops[i].Index); next < at; next++ {
			reqs[next].Result = -int64(syscall.EFAULT)
		}
		next++
	}
	for ; next < len(reqs); next++ {
		reqs[next].Result = -int64(syscall.EFAULT)
	}
}

// writeResults writes the Result of the requests that have an op, and counts
// those that failed.
func writeResults(reqs []Request, ops []engine.Op) (failed int) {
	for i := range ops {
		op := &ops[i]
		reqs[op.Index].Result = op.Result
		if op.Result != int64(op.Len) {
			failed++
		}
	}
	return failed
}
