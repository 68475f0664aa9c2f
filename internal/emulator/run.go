package emulator

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run runs a program with devices that are not there and waits until it and
// all its descendants have ended. It writes what they did wrong to o.Stderr.
// An error is an *Error.
//
// The executable of this process must call Stage first of all if IsStage says
// so: Run starts it a second time, as the program's process.
func Run(o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, failed(err)
	}
	path, err := exec.LookPath(o.Program[0])
	switch {
	case errors.Is(err, os.ErrPermission):
		return Result{}, &Error{ExitNotExecutable, err}
	case err != nil && !errors.Is(err, exec.ErrDot):
		return Result{}, &Error{ExitNotFound, err}
	}
	report := &reporter{out: o.Stderr, trace: o.Trace}
	s, err := newSupervisor(o, report)
	if err != nil {
		return Result{}, failed(err)
	}
	defer s.close()
	env := slices.DeleteFunc(slices.Clone(o.Env), func(v string) bool { return strings.HasPrefix(v, ControlVariable+"=") })
	env = append(env, ControlVariable+"="+controlRoot)

	// The program is killed when the thread that started it ends, which is
	// when this process does, however that comes.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return Result{}, failed(fmt.Errorf("become a subreaper: %w", err))
	}
	as := stageName
	if o.old {
		as = oldStage
	}
	stage, err := startStage(as, path, o.Program, env)
	if err != nil {
		return Result{}, err
	}
	signals := forwardSignals(stage.pid)
	defer signals.end()
	children := reap(stage.pid, signals)
	s.listener, err = stage.listener()
	if err != nil {
		stage.cancel()
		<-children.all
		return Result{}, err
	}
	status, err := s.attend(stage, children, signals)
	result := Result{Status: status, Wrong: report.summary()}
	return result, err
}

// attend serves until the program's last process has ended.
func (s *supervisor) attend(stage *stage, children *children, signals *signals) (syscall.WaitStatus, error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		stage.cancel()
		<-children.all
		return 0, failed(fmt.Errorf("make a pipe: %w", err))
	}
	s.stop = pipe[0]
	broken := make(chan error, 1)
	s.group.Go(func() {
		if err := s.serve(); err != nil {
			broken <- err
		}
	})
	err := stage.release()
	select {
	case <-children.all:
	case <-signals.giveUp: // the program has ended and left processes behind
		s.report.trouble("stopped by a signal while processes of the program were still running")
	case cause := <-broken:
		err = failed(cause)
		_ = unix.Kill(stage.pid, unix.SIGKILL) // it would hang in its next open
	}
	close(s.stopped)
	_ = unix.Close(pipe[1])
	s.group.Wait()
	_ = unix.Close(pipe[0])
	_ = unix.Close(s.listener.fd)
	status, _ := children.status()
	return status, err
}
