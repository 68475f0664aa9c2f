package phxdev

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestInterruptedCallsAreMadeAgain(t *testing.T) {
	for _, c := range []struct {
		interrupted, calls int
		last, want         syscall.Errno
	}{
		{0, 1, 0, 0},
		{0, 1, unix.EFAULT, unix.EFAULT},
		{3, 4, 0, 0},
		{3, 4, unix.EFAULT, unix.EFAULT},
		{Interruptions - 1, Interruptions, 0, 0},
		{Interruptions, Interruptions, 0, unix.EINTR}, // not for ever
	} {
		calls := 0
		got := again(func() syscall.Errno {
			if calls++; calls <= c.interrupted {
				return unix.EINTR
			}
			return c.last
		})
		if got != c.want || calls != c.calls {
			t.Errorf("interrupted %d times, then %v: got %v after %d calls, want %v after %d", c.interrupted, c.last, got, calls, c.want, c.calls)
		}
	}
}
