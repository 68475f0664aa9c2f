package threeway

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// streams are fds without positioned transfers, and fds that are none at all.
func streams() []maker {
	return []maker{
		{"pipe, end to read", func(w *world) (*target, *lack) { r, _ := w.pipe(0); return r, nil }},
		{"pipe, end to write", func(w *world) (*target, *lack) { _, wr := w.pipe(0); return wr, nil }},
		{"O_NONBLOCK pipe", func(w *world) (*target, *lack) { r, _ := w.pipe(unix.O_NONBLOCK); return r, nil }},
		{"socket", func(w *world) (*target, *lack) {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			w.must(err)
			_, err = unix.Write(pair[1], noise(6, 5000))
			w.must(err)
			w.own(pair[1], nil)
			return bare(w.own(pair[0], nil)), nil
		}},
		{"eventfd", func(w *world) (*target, *lack) {
			return bare(w.own(unix.Eventfd(3, unix.EFD_CLOEXEC))), nil
		}},
		{"epoll", func(w *world) (*target, *lack) {
			return bare(w.own(unix.EpollCreate1(unix.EPOLL_CLOEXEC))), nil
		}},
		{"timerfd", func(w *world) (*target, *lack) {
			return bare(w.own(unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC))), nil
		}},
		{"signalfd", func(w *world) (*target, *lack) {
			return bare(w.own(unix.Signalfd(-1, new(unix.Sigset_t), unix.SFD_CLOEXEC))), nil
		}},
		{"inotify", func(w *world) (*target, *lack) {
			return bare(w.own(unix.InotifyInit1(unix.IN_CLOEXEC))), nil
		}},
		{"pidfd", pidfd},
		{"message queue", messageQueue},
		{"directory", func(w *world) (*target, *lack) {
			return bare(w.open(w.tmp, unix.O_RDONLY|unix.O_DIRECTORY)), nil
		}},
		{"closed fd", func(w *world) (*target, *lack) {
			// So high that nobody else is given it.
			fd, err := unix.FcntlInt(uintptr(w.open("/dev/null", unix.O_RDWR)), unix.F_DUPFD_CLOEXEC, 700)
			w.must(err)
			w.must(unix.Close(fd))
			return bare(int32(fd)), nil
		}},
		{"fd -1", func(*world) (*target, *lack) { return bare(-1), nil }},
		{"fd -100", func(*world) (*target, *lack) { return bare(unix.AT_FDCWD), nil }},
		{"fd beyond all", func(*world) (*target, *lack) { return bare(1<<31 - 1), nil }},
	}
}

// pidfd has no positioned transfers, though it may be a regular file (since
// 6.9), and can be polled: nothing ever comes.
func pidfd(w *world) (*target, *lack) {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return nil, &lack{"pidfd", fmt.Errorf("pidfd_open: %w", err)}
	}
	return bare(w.own(fd, nil)), nil
}

// messageQueue is a regular file, too: a line of text that can be polled.
func messageQueue(w *world) (*target, *lack) {
	name, err := unix.BytePtrFromString(fmt.Sprintf("phx-threeway-%d", os.Getpid()))
	w.must(err)
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600, 0, 0, 0)
	if errno != 0 {
		return nil, &lack{"mqueue", fmt.Errorf("mq_open: %w", errno)}
	}
	to := bare(w.own(int(fd), nil))
	if _, _, errno = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0); errno != 0 {
		w.must(errno)
	}
	to.size, to.far = 80, false
	return to, nil
}

func bare(fd int32) *target { return &target{fd: fd, size: fileBytes, far: true, wide: true} }

// pipe has data waiting: whoever reads in spite of ESPIPE moves some.
func (w *world) pipe(flags int) (r, wr *target) {
	var ends [2]int
	w.must(unix.Pipe2(ends[:], flags|unix.O_CLOEXEC))
	_, err := unix.Write(ends[1], noise(7, 5000))
	w.must(err)
	return bare(w.own(ends[0], nil)), bare(w.own(ends[1], nil))
}
