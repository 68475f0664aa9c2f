package emulator

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stage is the supervisor's side of the process that becomes the program.
type stage struct {
	pid    int
	socket int // owned until release or cancel
}

// startStage starts this executable again, as stageName or oldStage. The thread that calls must live as
// long as the program may.
func startStage(name, path string, program, env []string) (*stage, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, failed(fmt.Errorf("make a socket: %w", err))
	}
	defer unix.Close(pair[1])
	// It keeps its number there, so that no descriptor is in the way that the
	// program inherits.
	if _, err := unix.FcntlInt(uintptr(pair[1]), unix.F_SETFD, 0); err != nil {
		_ = unix.Close(pair[0])
		return nil, failed(fmt.Errorf("make a socket that can be inherited: %w", err))
	}
	args := append([]string{name, strconv.Itoa(pair[1]), path}, program...)
	pid, err := syscall.ForkExec("/proc/self/exe", args, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		_ = unix.Close(pair[0])
		return nil, failed(fmt.Errorf("start the program's process (is /proc mounted?): %w", err))
	}
	return &stage{pid, pair[0]}, nil
}

// listener receives the filter's listener and checks that it can be used and
// that the program's memory can be read. The caller owns it.
func (g *stage) listener() (*listener, error) {
	text, fd, err := g.receive()
	if err != nil {
		return nil, err
	}
	if fd < 0 {
		return nil, failed(errors.New("the program's process ended before it began"))
	}
	unix.CloseOnExec(fd)
	l := &listener{fd: fd}
	if err := g.check(l, text); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	l.wakeHere()
	return l, nil
}

func (g *stage) check(l *listener, text string) error {
	if err := l.probe(); err != nil {
		return unable("the kernel cannot give descriptors to a watched program (Linux 5.14 can): %w", err)
	}
	var addr uint64
	if _, err := fmt.Sscan(text, &addr, &l.killable); err != nil {
		return failed(fmt.Errorf("the program's process said %q: %w", text, err))
	}
	word := make([]byte, len(greeting))
	if errno := readMemory(uint32(g.pid), addr, word); errno != 0 {
		return unable("cannot read the program's memory (kernel.yama.ptrace_scope 2 or 3, or a container without process_vm_readv): %w", errno)
	}
	if string(word) != greeting {
		return failed(fmt.Errorf("read %q from the program's memory: %w", word, unix.EIO))
	}
	return nil
}

// release lets the program begin and says whether it did. Notifications must
// be answered meanwhile.
func (g *stage) release() error {
	defer g.cancel()
	if _, err := unix.Write(g.socket, []byte{1}); err != nil {
		return failed(fmt.Errorf("start the program: %w", err))
	}
	_, _, err := g.receive()
	return err
}

// cancel closes the socket; a stage that still waits exits.
func (g *stage) cancel() {
	if g.socket >= 0 {
		_ = unix.Close(g.socket)
		g.socket = -1
	}
}

// receive is one message of the stage, without its exit status, and the
// descriptor in it, or -1. An exit status that is not 0 is the error. Nothing
// at all: the stage has become the program, or died.
func (g *stage) receive() (text string, fd int, err error) {
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	var n, oobn int
	for {
		n, oobn, _, _, err = unix.Recvmsg(g.socket, buf, oob, 0)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return "", -1, failed(fmt.Errorf("hear from the program's process: %w", err))
	}
	if n == 0 {
		return "", -1, nil
	}
	status, text, _ := strings.Cut(string(buf[:n]), " ")
	if exit, _ := strconv.Atoi(status); exit != 0 {
		return "", -1, &Error{exit, errors.New(text)}
	}
	fd = -1
	if messages, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil && len(messages) == 1 {
		if fds, err := unix.ParseUnixRights(&messages[0]); err == nil && len(fds) == 1 {
			fd = fds[0]
		}
	}
	return text, fd, nil
}
