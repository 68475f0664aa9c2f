package phxdev

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Held is a thread whose signals are held back, and the mask that it had.
type Held struct {
	mask uint64 // the kernel's sigset_t; signal n is bit n-1
	held bool   // false: the kernel refused, and there is nothing to undo
}

// HoldSignals holds back the signals of the calling thread until Release. A
// handler of the program's may call exit, and the call that it has interrupted
// never goes on: between a MAP and the note that an UNMAP is due, or between
// the taking of that note and the UNMAP, the pin would be nobody's. The
// goroutine stays on its thread meanwhile.
//
// What the kernel raises for an instruction or a system call of the thread's own
// is not held back: it would end the process. Nor are the C library's two.
func HoldSignals() Held {
	runtime.LockOSThread()
	set, old := heldBack, uint64(0)
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_BLOCK,
		uintptr(unsafe.Pointer(&set)), uintptr(unsafe.Pointer(&old)), unsafe.Sizeof(set), 0, 0)
	return Held{mask: old, held: errno == 0}
}

// heldBack is all signals but those, as a mask.
const heldBack = ^uint64(1<<(unix.SIGILL-1) | 1<<(unix.SIGTRAP-1) | 1<<(unix.SIGBUS-1) | 1<<(unix.SIGFPE-1) |
	1<<(unix.SIGSEGV-1) | 1<<(unix.SIGSYS-1) | 1<<(32-1) | 1<<(33-1))

// Release lets the signals come, those first that came meanwhile: their handlers
// run inside. The others have the processor if that takes long, hence no raw
// call.
func (h Held) Release() {
	if h.held {
		_, _, _ = unix.Syscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
			uintptr(unsafe.Pointer(&h.mask)), 0, unsafe.Sizeof(h.mask), 0, 0)
	}
	runtime.UnlockOSThread()
}
