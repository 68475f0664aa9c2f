package threeway

import (
	"fmt"
	"path/filepath"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// fuseKind is a file of a file system in user space, which takes a freedom that
// disks do not take.
type fuseKind struct {
	name  string
	file  fuseFile
	flags int // of open, beside O_RDWR
}

// fuseKinds are the files of the server, in order; file i is called "i".
func fuseKinds() []*fuseKind {
	const direct = fuse.FOPEN_DIRECT_IO // a server that cuts must say so: else a short count ends the file
	return []*fuseKind{
		{name: "cached"},
		{name: "O_DIRECT", flags: unix.O_DIRECT},
		{name: "uncached", file: fuseFile{flags: direct}},
		{name: "parallel writes", file: fuseFile{flags: direct | fuse.FOPEN_PARALLEL_DIRECT_WRITES}},
		{name: "short counts", file: fuseFile{flags: direct, cut: 1000}},
		{name: "late answers", file: fuseFile{flags: direct | fuse.FOPEN_PARALLEL_DIRECT_WRITES, late: true}},
		{name: "EINTR", file: fuseFile{flags: direct, cut: 3000, interrupts: true}},
		{name: "errors", file: fuseFile{flags: direct, zones: true}},
		{name: "not seekable", file: fuseFile{flags: direct | fuse.FOPEN_NONSEEKABLE}},
		{name: "stream", file: fuseFile{flags: direct | fuse.FOPEN_STREAM}},
	}
}

func fuses() (all []maker) {
	for i, k := range fuseKinds() {
		all = append(all, maker{"FUSE, " + k.name, func(w *world) (*target, *lack) { return w.fuseFile(i, k.flags) }})
	}
	return all
}

// fuseFile opens file i of the server.
func (w *world) fuseFile(i, flags int) (*target, *lack) {
	if w.ns == nil {
		return nil, w.noNS
	}
	if w.fuse == "" {
		dir, err := w.ns.startServer(w)
		if err != nil {
			return nil, &lack{"fuse", err}
		}
		w.fuse = dir
	}
	path := filepath.Join(w.fuse, fmt.Sprint(i))
	same, back := w.ns.open(w, path, unix.O_RDWR), w.ns.open(w, path+"-back", unix.O_RDWR)
	to := bare(w.ns.open(w, path, unix.O_RDWR|flags))
	to.direct = flags&unix.O_DIRECT != 0
	data := noise(12, fileBytes)
	to.reset = func() { // of the size, and of pages, the kernel must know
		w.must(unix.Ftruncate(int(same), 0))
		w.must(unix.Ftruncate(int(same), fileBytes))
		n, err := unix.Pwrite(int(back), data, 0)
		if n != fileBytes && err == nil {
			err = unix.EIO
		}
		w.must(err)
	}
	to.state = func([]engine.Op, []*target) []byte { return readInto(nil, back, 0, fuseBytes+4096) }
	to.reset()
	return to, nil
}
