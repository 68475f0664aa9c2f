package threeway

import (
	"encoding/binary"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// target is a file that requests go to.
type target struct {
	name   string
	fd     int32
	origin int64 // where offsets are counted from
	size   int64 // bytes there; requests crowd around them
	far    bool  // offsets up to the end of the world, too
	wide   bool  // reads of any length, too: no more is there than the reservation holds
	direct bool  // O_DIRECT or as strict: memory is all good or all bad (doc.go), nothing beyond a slice
	hazy   bool  // data differs from read to read; counts do not

	// reset puts the first contents back, state says what is there now, as
	// far as ops can have changed it. nil: the file keeps nothing.
	reset func()
	state func(ops []engine.Op, to []*target) []byte
}

// world is where targets are made. It ends with its test.
type world struct {
	t    *testing.T
	tmp  string     // a folder of TMPDIR
	ns   *namespace // nil: lacking
	noNS *lack      // why ns is nil
	fuse string     // the folder of the FUSE server; "": not started
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, tmp: t.TempDir()}
	w.ns, w.noNS = newNamespace(t)
	return w
}

type place struct{ name, path string }

// dirs are folders of ordinary file systems.
func (w *world) dirs() []place {
	all := []place{{"TMPDIR", w.tmp}}
	if unix.Access("/dev/shm", unix.W_OK) == nil {
		all = append(all, place{"tmpfs", "/dev/shm"})
	}
	return all
}

// must ends the test when something fails that has no reason to.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// own makes fd end with the world.
func (w *world) own(fd int, err error) int32 {
	w.t.Helper()
	w.must(err)
	w.t.Cleanup(func() { _ = unix.Close(fd) })
	return int32(fd)
}

func (w *world) open(path string, flags int) int32 {
	w.t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		err = &os.PathError{Op: "open", Path: path, Err: err}
	}
	return w.own(fd, err)
}

// file makes a file of lenBytes noise in dir and opens it with flags. It has no
// name, so that nothing is left behind, however the process ends.
func (w *world) file(dir string, lenBytes int, flags int) *target {
	w.t.Helper()
	f, err := os.CreateTemp(dir, "file")
	w.must(err)
	w.must(f.Close())
	back := w.open(f.Name(), unix.O_RDWR)
	to := &target{size: int64(lenBytes), far: true, wide: true, direct: flags&unix.O_DIRECT != 0}
	w.kept(to, back, noise(3, lenBytes))
	to.fd = w.open(f.Name(), flags)
	w.must(os.Remove(f.Name()))
	return to
}

// kept makes to a file that keeps data, reached through the fd back, which the
// requests do not use.
func (w *world) kept(to *target, back int32, data []byte) {
	var st unix.Stat_t
	to.reset = func() {
		w.must(unix.Fstat(int(back), &st))
		if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size != int64(len(data)) {
			w.must(unix.Ftruncate(int(back), int64(len(data))))
		}
		n, err := unix.Pwrite(int(back), data, 0)
		if n != len(data) && err == nil {
			err = unix.EIO
		}
		w.must(err)
	}
	to.state = func(ops []engine.Op, of []*target) []byte {
		w.must(unix.Fstat(int(back), &st))
		left := binary.NativeEndian.AppendUint64(nil, uint64(st.Size))
		left = readInto(left, back, 0, len(data)+128<<10)
		head := len(left)
		for i := range ops {
			op := &ops[i]
			if of[i] != to {
				continue
			}
			if done := max(0, op.Result); to.direct && done < int64(op.Len) {
				within := func(off int64) int64 { return min(off, int64(head)-8) + 8 }
				clear(left[within(op.Off+done):within(op.Off+int64(op.Len))])
			} else if op.Off > int64(len(data)) {
				left = readInto(left, back, op.Off, int(min(op.Len, 20<<20)))
			}
		}
		return left
	}
	to.reset()
}

// readInto appends the lenBytes at off of fd to data, as many as there are.
func readInto(data []byte, fd int32, off int64, lenBytes int) []byte {
	from := len(data)
	data = append(data, make([]byte, lenBytes)...)
	for at := from; at < len(data); {
		n, err := unix.Pread(int(fd), data[at:], off+int64(at-from))
		if n <= 0 || err != nil {
			return data[:at]
		}
		at += n
	}
	return data
}
