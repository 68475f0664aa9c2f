package emulator

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// children are the processes that end up as ours: the program, and orphans of
// it, because this process is a subreaper.
type children struct {
	all chan struct{} // closed when none is left

	mu   sync.Mutex
	done bool // the program has ended
	last syscall.WaitStatus
}

// reap collects every child until there is none. It tells signals when the
// program is gone, before its number can be another's.
func reap(program int, signals *signals) *children {
	c := &children{all: make(chan struct{})}
	go func() {
		defer close(c.all)
		for {
			// First look, then collect: a zombie keeps its number.
			var info unix.Siginfo
			if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil); err == unix.EINTR {
				continue
			} else if err != nil {
				return
			}
			pid := childOf(&info)
			if pid == program {
				signals.programEnded()
			}
			var status unix.WaitStatus
			if got, err := unix.Wait4(pid, &status, 0, nil); err == nil && got == program {
				c.mu.Lock()
				c.done, c.last = true, syscall.WaitStatus(status)
				c.mu.Unlock()
			}
		}
	}()
	return c
}

// status is how the program ended; false if it has not.
func (c *children) status() (syscall.WaitStatus, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.done
}
