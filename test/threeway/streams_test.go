package threeway

import (
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

func bare(fd int32) *target { return &target{fd: fd, size: fileBytes, far: true, wide: true} }

// pipe has data waiting: whoever reads in spite of ESPIPE moves some.
func (w *world) pipe(flags int) (r, wr *target) {
	var ends [2]int
	w.must(unix.Pipe2(ends[:], flags|unix.O_CLOEXEC))
	_, err := unix.Write(ends[1], noise(7, 5000))
	w.must(err)
	return bare(w.own(ends[0], nil)), bare(w.own(ends[1], nil))
}
