// Package phxdev speaks to the phxfs character device, /dev/phxfs_devN, and
// knows nothing of who owns a registration (docs/abi.md §5).
//
// A registration of device memory takes four calls, in this order and in
// reverse:
//
//	host, err := dev.Mmap(n)         // address space, not usable yet
//	err = dev.Map(host, addr, n)     // pins the device memory behind it
//	...                              // host is ordinary memory for file I/O
//	err = dev.Unmap(host, addr, n)   // drops the pin
//	err = phxdev.Munmap(host, n)     // gives the address space back
//
// The caller keeps the order. The kernel module does not check it: munmap
// before Unmap leaks the pin for as long as the machine runs, and a second
// Unmap, a second Map on the same mapping, or an Unmap after the vendor's
// driver freed the memory is a use-after-free in the kernel.
//
// Addresses are uintptr and never []byte or unsafe.Pointer: the garbage
// collector must not see them, and touching a mapping before Map is SIGBUS.
//
// Errors wrap the kernel's syscall.Errno together with what was being done.
// Calls that succeed allocate nothing.
//
// Interrupted calls. open, mmap, munmap and UNMAP are tried again after EINTR.
// The module itself never answers UNMAP so (its answers are 0, and EFAULT for a
// bad pointer): what does, a supervisor or a filter, stands in front of it, and
// nothing has happened. MAP is not repeated here, for it may be called only
// once on a mapping: after EINTR, as after any error, nothing is pinned, and the
// way to try again is Munmap, Mmap and Map on the new mapping. A call that was
// interrupted Interruptions times in a row gives up and returns EINTR. close(2)
// is never repeated: Linux has released the descriptor even when it answers
// EINTR, so that answer counts as success.
//
// Signals. A handler of the program's may call exit and never return to Map or
// Unmap. Who keeps account of pins for the exit handler calls HoldSignals before
// the one, or before striking a pin off for the other, and Release when the
// account is right again.
//
// Threads. Every method but Close may be called from any number of threads.
// Close must be the last call and alone; the owner sees to that.
package phxdev
