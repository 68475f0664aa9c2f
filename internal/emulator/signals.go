package emulator

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// passed are the signals that somebody may send to the emulator and mean the
// program. Stop signals are left alone: the terminal sends them to both.
func passed() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2}
}

// signals hands signals on to the program.
type signals struct {
	in     chan os.Signal
	done   chan struct{}
	giveUp chan struct{} // closed when a signal to end comes after the program's end

	mu      sync.Mutex
	program int // 0 once it has ended
}

// forwardSignals begins; end ends it. A signal that was ignored when this
// process started (nohup) stays ignored.
func forwardSignals(program int) *signals {
	f := &signals{
		in: make(chan os.Signal, 16), done: make(chan struct{}), giveUp: make(chan struct{}),
		program: program,
	}
	for _, sig := range passed() {
		if !signal.Ignored(sig) {
			signal.Notify(f.in, sig)
		}
	}
	go func() {
		defer close(f.done)
		over := false
		for sig := range f.in {
			if !f.pass(sig.(syscall.Signal)) && !over && sig != unix.SIGUSR1 && sig != unix.SIGUSR2 {
				over = true
				close(f.giveUp)
			}
		}
	}()
	return f
}

// pass is false if the program has ended.
func (f *signals) pass(sig syscall.Signal) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.program == 0 {
		return false
	}
	if (sig == unix.SIGINT || sig == unix.SIGQUIT) && inForeground() {
		return true // from the keyboard: the terminal has sent it to the program, too
	}
	_ = unix.Kill(f.program, sig)
	return true
}

func (f *signals) programEnded() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.program = 0
}

func (f *signals) end() {
	signal.Stop(f.in)
	close(f.in)
	<-f.done
}

// inForeground is whether this process belongs to the group that the keyboard
// of its terminal signals.
func inForeground() bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer unix.Close(tty)
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
