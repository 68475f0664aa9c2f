package emulator

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageName is argument 0 of the process that becomes the program; oldStage is
// too, and does as on old kernels.
const (
	stageName = "phx-emulate-stage"
	oldStage  = "phx-emulate-stage-old"
)

// greeting is what the stage has in its memory for the supervisor to read.
const greeting = "phx emulate reads"

// IsStage is whether Run started this process, given os.Args.
func IsStage(args []string) bool {
	return len(args) >= 4 && (args[0] == stageName || args[0] == oldStage)
}

// Stage puts the filter on this thread, sends the listener to the supervisor,
// waits for its word and becomes the program. It does not return. args:
// stageName, number of the socket, path of the program, then its arguments.
func Stage(args []string) {
	runtime.LockOSThread()
	socket, err := strconv.Atoi(args[1])
	if err != nil {
		os.Exit(ExitFailed)
	}
	unix.CloseOnExec(socket)
	if err := becomeProgram(socket, args[0] == oldStage, args[2], args[3:]); err != nil {
		text := strconv.Itoa(err.Exit) + " " + err.Error()
		_ = unix.Send(socket, []byte(text), 0)
	}
	os.Exit(ExitFailed)
}

func becomeProgram(socket int, old bool, path string, args []string) *Error {
	if err := supported(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return unable("set no_new_privs: %w", err)
	}
	killable := !old
	fd, errno := newListener(filter(), killable)
	if errno == unix.EINVAL && killable {
		killable = false
		fd, errno = newListener(filter(), killable)
	}
	if errno != 0 {
		return refused(errno)
	}
	word := []byte(greeting)
	message := fmt.Appendf(nil, "0 %d %t", addressOf(word), killable)
	if err := unix.Sendmsg(socket, message, unix.UnixRights(fd), nil, 0); err != nil {
		return failed(fmt.Errorf("send the listener: %w", err))
	}
	_ = unix.Close(fd)
	if n, err := unix.Read(socket, make([]byte, 1)); err != nil || n != 1 {
		os.Exit(ExitFailed) // called off
	}
	runtime.KeepAlive(word)
	err := syscall.Exec(path, args, os.Environ())
	return &Error{ExitNotExecutable, fmt.Errorf("execute %s: %w", path, err)}
}

// supported checks what can be asked without a filter.
func supported() *Error {
	if errno := actionAvailable(unix.SECCOMP_RET_USER_NOTIF); errno != 0 {
		return refused(errno)
	}
	sizes, errno := notifySizes()
	if errno != 0 {
		return refused(errno)
	}
	if want := [3]uint16{80, 24, 64}; sizes != want {
		return unable("the kernel's seccomp structures are %v bytes, not %v: %w", sizes, want, unix.EOPNOTSUPP)
	}
	return nil
}

// refused says what an errno of seccomp(2) means.
func refused(errno syscall.Errno) *Error {
	why := "unexpected"
	switch errno {
	case unix.EBUSY:
		why = "this process is already under a supervisor like this one, and there can be only one: phx emulate inside phx emulate, or a container that watches system calls"
	case unix.ENOSYS:
		why = "the kernel is built without seccomp, or the container hides it"
	case unix.EINVAL, unix.EOPNOTSUPP:
		why = "the kernel has no seccomp user notification (it came with Linux 5.0; 5.14 is needed)"
	case unix.EPERM, unix.EACCES:
		why = "a filter or policy of this container forbids it"
	}
	return unable("cannot watch system calls (seccomp): %w: %s", errno, why)
}
