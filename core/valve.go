package core

import (
	"sync/atomic"
	"weak"
)

// valve notices that the garbage collector has run. In the product it is off,
// and runs only if the heap comes to its limit (docs/architecture.md), which it
// should never do. Looking is one weak pointer: no finalizer with its thread,
// no reading of statistics, nothing that stops the world.
type valve struct {
	mark weak.Pointer[valveMark] // set by newValve, then read-only; nil after a collection
	told atomic.Bool
}

// valveMark is an object that nothing refers to. It holds a pointer to have a
// span of its own: small objects without pointers are collected together.
type valveMark struct{ _ *byte }

func newValve() *valve { return &valve{mark: weak.Make(new(valveMark))} }

// opened is true once, in the first call after the first collection.
func (v *valve) opened() bool {
	return v.mark.Value() == nil && !v.told.Load() && v.told.CompareAndSwap(false, true)
}

// watchValve says once that the collector has run. Its callers are off the I/O
// path, and are what makes the heap grow.
func (l *Library) watchValve(call string, id int) {
	if l.valve != nil && l.logs(LevelWarn) && l.valve.opened() {
		l.tellDevice(LevelWarn, call, int32(id), "the memory limit of the library's Go heap is reached and the garbage collector has run: calls may have been delayed; this is a bug of the library")
	}
}
