// Package uringtest stands in for the kernel in tests of rings.
//
// An Emulator is an io_uring in user space: it makes rings in plain memory,
// takes requests and posts completions as the kernel does, and gives each
// request to a function of the test, on a goroutine of its own, so that the
// test can fail it, shorten it or hold it. It can lack flags, opcodes and
// features, and refuse entries, as older kernels do. It panics when a ring is
// misused (closed or unmapped with a request in flight, completions lost).
//
// A Tamper sits on any Kernel, the real one too, and spoils chosen calls.
//
// Lock order: Emulator.mu is a leaf; no function of the test is called under it.
package uringtest
