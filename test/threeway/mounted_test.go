package threeway

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mounted are files that need mounts or devices of their own.
func mounted() []maker {
	return []maker{
		{"overlayfs, lower file", overlay(false)},
		{"overlayfs, upper file", overlay(true)},
		{"full tmpfs", full},
		{"loop device", loop(0)},
		{"loop device, O_DIRECT", loop(unix.O_DIRECT)},
	}
}

// overlay is a file of a lower folder in TMPDIR, read through an overlay, or
// copied up into a tmpfs.
func overlay(up bool) func(*world) (*target, *lack) {
	return func(w *world) (*target, *lack) {
		if w.ns == nil {
			return nil, w.noNS
		}
		lower, err := os.MkdirTemp(w.tmp, "lower")
		w.must(err)
		w.must(os.WriteFile(filepath.Join(lower, "file"), noise(9, fileBytes), 0o600))
		upper, err := w.ns.folder()
		w.must(err)
		work, err := w.ns.folder()
		w.must(err)
		top, err := w.ns.mount("overlay", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work))
		if err != nil {
			return nil, &lack{"overlay", err}
		}
		path := filepath.Join(top, "file")
		to := bare(0)
		if !up {
			to.fd = w.ns.open(w, path, unix.O_RDONLY)
			return to, nil
		}
		back := w.ns.open(w, path, unix.O_RDWR)
		w.kept(to, back, noise(9, fileBytes))
		to.fd = w.ns.open(w, path, unix.O_RDWR)
		return to, nil
	}
}

// full is a file that fills its file system: a write behind it gets ENOSPC,
// one across its end is short.
func full(w *world) (*target, *lack) {
	if w.ns == nil {
		return nil, w.noNS
	}
	const size = 40 * 4096
	dir, err := w.ns.mount("tmpfs", fmt.Sprintf("size=%d,huge=never", size))
	if err != nil {
		return nil, &lack{"mount", err}
	}
	to := bare(w.ns.open(w, filepath.Join(dir, "file"), unix.O_RDWR|unix.O_CREAT))
	to.size = size
	w.kept(to, to.fd, noise(10, size))
	return to, nil
}

// loop is a block device made of a file in the namespace's tmpfs.
func loop(flags int) func(*world) (*target, *lack) {
	return func(w *world) (*target, *lack) {
		if w.ns == nil {
			return nil, w.noNS
		}
		const size = 64 * 4096
		fd, back, missing := w.loop(size, flags, 0)
		if missing != nil {
			return nil, missing
		}
		to := bare(w.own(fd, nil))
		to.size, to.direct = size, flags&unix.O_DIRECT != 0
		w.kept(to, w.own(back, nil), noise(11, size))
		return to, nil
	}
}

// loop gives two fds, with flags and without, of a block device of size bytes
// with sectors of that many bytes (0: the kernel's choice). The kernel dissolves
// it when its last fd is closed.
func (w *world) loop(size, flags int, sector uint32) (fd, back int, missing *lack) {
	image := filepath.Join(w.ns.base, fmt.Sprintf("image%d-%d", flags, sector))
	w.must(w.ns.do(func() error { return os.WriteFile(image, make([]byte, size), 0o600) }))
	file := w.ns.open(w, image, unix.O_RDWR)
	err := w.ns.do(func() (err error) {
		fd, back, err = loopOver(int(file), w.ns.base, flags, sector)
		return err
	})
	if err != nil {
		return -1, -1, &lack{"loop", err}
	}
	return fd, back, nil
}

// loopOver sets up a free loop device over file and opens it twice. Others may
// take the free one meanwhile, so it asks again.
func loopOver(file int, dir string, flags int, sector uint32) (fd, back int, err error) {
	control, err := unix.Open("/dev/loop-control", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("open /dev/loop-control: %w", err)
	}
	defer func() { _ = unix.Close(control) }()
	for range 20 {
		var n int
		if n, err = unix.IoctlRetInt(control, unix.LOOP_CTL_GET_FREE); err != nil {
			return -1, -1, fmt.Errorf("LOOP_CTL_GET_FREE: %w", err)
		}
		node := filepath.Join(dir, fmt.Sprintf("loop%d-%d-%d", n, flags, sector))
		if err = unix.Mknod(node, unix.S_IFBLK|0o600, int(unix.Mkdev(7, uint32(n)))); err != nil && err != unix.EEXIST {
			return -1, -1, fmt.Errorf("mknod %s: %w", node, err)
		}
		if back, err = unix.Open(node, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			return -1, -1, fmt.Errorf("open %s: %w", node, err)
		}
		cfg := unix.LoopConfig{Fd: uint32(file), Size: sector, Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		if err = unix.IoctlLoopConfigure(back, &cfg); err == nil {
			if fd, err = unix.Open(node, unix.O_RDWR|unix.O_CLOEXEC|flags, 0); err == nil {
				return fd, back, nil
			}
		}
		_ = unix.Close(back)
		if err != unix.EBUSY {
			break
		}
	}
	return -1, -1, fmt.Errorf("a loop device: %w", err)
}
