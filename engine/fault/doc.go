// Package fault is a scripted system-call layer for engine tests. A Script
// stands in for engine.Config.IO: each call that a Rule matches fails, comes
// back short, panics or is held at a Barrier; all others, and what a rule lets
// through, go to the real kernel.
//
// A Barrier replaces sleeping in tests: the test waits until the calls it
// expects are parked there, looks at what must be true at that moment, and
// releases them.
//
// Lock order: Script.mu, trace.mu and Barrier.mu are leaves and never held
// together, nor across a system call.
package fault
