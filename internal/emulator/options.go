package emulator

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// MaxDevices is how many devices the kernel module can offer.
const MaxDevices = 8

// Options say what to emulate for which program.
type Options struct {
	Devices   int      // 0..MaxDevices
	Addresses []string // PCI addresses of the first devices; the others get defaults
	Rules     []Rule
	Trace     bool // a line on Stderr for each event
	DevDir    string
	SysfsRoot string    // like DevDir a second place to see the files in, beside /dev and /sys; "" or relative: none
	Program   []string  // name or path, then its arguments
	Env       []string  // of the program
	Stderr    io.Writer // lines of the emulator; the program has the process's own 0, 1, 2

	old bool // tests: do as on Linux 5.14, without what came later
}

// Result is how it went.
type Result struct {
	Status syscall.WaitStatus // of the program
	Wrong  int                // faults, and what kept the emulator from its work
}

// Exit statuses of a command that runs a program under the emulator, beside
// the program's own.
const (
	ExitWrong         = 99  // strict, and something was wrong
	ExitUnable        = 77  // this machine or container cannot do it: a skip for test runners
	ExitFailed        = 125 // the emulator failed
	ExitNotExecutable = 126 // the program was found and cannot be executed
	ExitNotFound      = 127 // there is no such program
)

// Error says why the program was not run, or not to its end.
type Error struct {
	Exit  int // one of the statuses above
	cause error
}

func (e *Error) Error() string { return e.cause.Error() }
func (e *Error) Unwrap() error { return e.cause }

func unable(format string, args ...any) *Error {
	return &Error{ExitUnable, fmt.Errorf(format, args...)}
}

func failed(err error) *Error { return &Error{ExitFailed, err} }

func (o *Options) check() error {
	if o.Devices < 0 || o.Devices > MaxDevices {
		return fmt.Errorf("%d devices, not 0 to %d: %w", o.Devices, MaxDevices, unix.EINVAL)
	}
	if len(o.Addresses) > o.Devices {
		return fmt.Errorf("%d PCI addresses for %d devices: %w", len(o.Addresses), o.Devices, unix.EINVAL)
	}
	if len(o.Program) == 0 {
		return fmt.Errorf("no program: %w", unix.EINVAL)
	}
	return nil
}

// ExitAs is the status to exit with: ExitWrong if strict and something was
// wrong, else what the program did. If it died of a signal this process dies
// of the same one and ExitAs does not return.
func (r Result) ExitAs(strict bool) int {
	switch {
	case strict && r.Wrong > 0:
		return ExitWrong
	case r.Status.Signaled():
		dieOf(r.Status.Signal())
		return 128 + int(r.Status.Signal()) // the signal is blocked here
	default:
		return r.Status.ExitStatus()
	}
}

// dieOf ends this process by a signal, without a core file: the program has
// left its own. The signal is sent to this thread: another one might take its
// time, and this one would be past it.
func dieOf(sig syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	resetSignal(sig)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
}

// ExitStatus is the status to exit with after Run has failed.
func ExitStatus(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Exit
	}
	return ExitFailed
}
