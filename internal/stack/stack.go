// Package stack gives a goroutine room for the signal handlers of a C host.
//
// A handler that was installed without SA_ONSTACK runs on whatever stack its
// thread is on, and in a Go call that is a goroutine's: 4 KiB at first, about
// which neither the kernel nor the handler knows anything.
package stack

// Reserve makes the stack of the calling goroutine 64 KiB large. Go never
// shrinks it without a garbage collection. None of the memory is touched.
func Reserve()
