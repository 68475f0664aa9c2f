package threeway

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maker makes one kind of file.
type maker struct {
	name string
	make func(*world) (*target, *lack)
}

// fileBytes is the size of most files: a few pages and a broken one.
const fileBytes = 40*4096 + 777

func makers() []maker {
	var all []maker
	add := func(more ...maker) { all = append(all, more...) }
	add(regulars()...)
	add(streams()...)
	add(devices()...)
	add(proc()...)
	add(mounted()...)
	add(fuses()...)
	return all
}

// in makes a file in one of the world's folders.
func in(tmpfs bool, flags int) func(*world) (*target, *lack) {
	return func(w *world) (*target, *lack) {
		dirs := w.dirs()
		if tmpfs && len(dirs) < 2 {
			return nil, &lack{"tmpfs", fmt.Errorf("nothing can be made in /dev/shm: %w", os.ErrPermission)}
		}
		dir := dirs[0].path
		if tmpfs {
			dir = dirs[1].path
		}
		if flags&unix.O_DIRECT != 0 {
			if missing := noDirect(dir); missing != nil {
				return nil, missing
			}
		}
		to := w.file(dir, fileBytes, flags)
		if flags&unix.O_APPEND != 0 {
			to.size = 0 // writes have an order: append_test.go. Here, they fail or are empty
		}
		return to, nil
	}
}

func noDirect(dir string) *lack {
	f, err := os.CreateTemp(dir, "direct")
	if err != nil {
		return &lack{"odirect", err}
	}
	defer func() { _, _ = f.Close(), os.Remove(f.Name()) }()
	fd, err := unix.Open(f.Name(), unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return &lack{"odirect", fmt.Errorf("open in %s: %w", dir, err)}
	}
	_ = unix.Close(fd)
	return nil
}

// regulars are regular files, each with its own flags.
func regulars() []maker {
	return []maker{
		{"TMPDIR", in(false, unix.O_RDWR)},
		{"tmpfs", in(true, unix.O_RDWR)},
		{"read-only fd", in(false, unix.O_RDONLY)},
		{"write-only fd", in(false, unix.O_WRONLY)},
		{"O_PATH fd", in(false, unix.O_PATH)},
		{"O_NONBLOCK file", in(false, unix.O_RDWR|unix.O_NONBLOCK)},
		{"O_DIRECT", in(false, unix.O_RDWR|unix.O_DIRECT)},
		{"O_DIRECT on tmpfs", in(true, unix.O_RDWR|unix.O_DIRECT)},
		{"O_DSYNC", in(true, unix.O_RDWR|unix.O_DSYNC)},
		{"sparse file", sparse},
		{"memfd", sealed(0)},
		{"memfd sealed against writes", sealed(unix.F_SEAL_WRITE)},
		{"memfd sealed against future writes", sealed(unix.F_SEAL_FUTURE_WRITE)},
		{"memfd sealed against growth", sealed(unix.F_SEAL_GROW | unix.F_SEAL_SHRINK)},
	}
}

// sparse is 5 GiB with a little data here and there.
func sparse(w *world) (*target, *lack) {
	to := w.file(w.tmp, fileBytes, unix.O_RDWR)
	first := to.reset
	to.reset = func() {
		first()
		w.must(unix.Ftruncate(int(to.fd), 5<<30))
		for _, off := range []int64{1<<31 - 5000, 1<<32 - 9} {
			_, err := unix.Pwrite(int(to.fd), noise(4, 20_000), off)
			w.must(err)
		}
	}
	to.reset()
	return to, nil
}

// sealed is a memfd with seals. One that may not be written keeps its data.
func sealed(seals int) func(*world) (*target, *lack) {
	return func(w *world) (*target, *lack) {
		fd, err := unix.MemfdCreate("threeway", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		to := &target{fd: w.own(fd, err), size: fileBytes, far: true, wide: true}
		w.kept(to, to.fd, noise(5, fileBytes))
		if seals != 0 {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
			w.must(err)
		}
		if seals&(unix.F_SEAL_WRITE|unix.F_SEAL_FUTURE_WRITE) != 0 {
			to.reset = nil
		}
		return to, nil
	}
}
