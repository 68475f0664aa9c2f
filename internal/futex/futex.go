// Package futex parks and wakes OS threads on a 32-bit word of this process
// (futex(2), private). A parked thread sits in a system call, so the Go
// scheduler takes its P away; channel wake-ups of locked threads cost three
// times as much (docs/architecture.md).
package futex

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2), linux/futex.h: FUTEX_WAIT and FUTEX_WAKE with
// FUTEX_PRIVATE_FLAG.
const (
	waitPrivate = 0 | 128
	wakePrivate = 1 | 128
)

// Wait parks the calling thread while *word == val. It may return at any time
// (a wake-up, a signal, a changed word): the caller re-checks its condition.
func Wait(word *atomic.Uint32, val uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), waitPrivate, uintptr(val), 0, 0, 0)
}

// Wake wakes up to n threads parked on word. It does not block.
func Wake(word *atomic.Uint32, n int) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wakePrivate, uintptr(n), 0, 0, 0)
}
