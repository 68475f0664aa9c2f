//go:build threeway

package threeway

import (
	"context"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// fuses are files of a file system that this process serves, each with a
// server's freedom that disks do not take.
func fuses() []maker {
	return []maker{
		{"FUSE, cached", served(&fuseFile{}, 0)},
		{"FUSE, O_DIRECT", served(&fuseFile{}, unix.O_DIRECT)},
		{"FUSE", served(&fuseFile{flags: fuse.FOPEN_DIRECT_IO}, 0)},
		{"FUSE, parallel writes", served(&fuseFile{flags: fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES}, 0)},
		{"FUSE, short counts", served(&fuseFile{flags: fuse.FOPEN_DIRECT_IO, cut: 1000}, 0)},
		{"FUSE, late answers", served(&fuseFile{flags: fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES, late: true}, 0)},
		{"FUSE, EINTR", served(&fuseFile{flags: fuse.FOPEN_DIRECT_IO, cut: 3000, interrupts: true}, 0)},
		{"FUSE, errors", served(&fuseFile{flags: fuse.FOPEN_DIRECT_IO, zones: true}, 0)},
		{"FUSE, not seekable", served(&fuseFile{flags: fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NONSEEKABLE}, 0)},
		{"FUSE, stream", served(&fuseFile{flags: fuse.FOPEN_DIRECT_IO | fuse.FOPEN_STREAM}, 0)},
	}
}

// served mounts a file system with one file, f, for one world at a time.
func served(f *fuseFile, flags int) func(*world) (*target, *lack) {
	return func(w *world) (*target, *lack) {
		if w.ns == nil {
			return nil, w.noNS
		}
		dir, err := w.ns.fuse(w.t, f)
		if err != nil {
			return nil, &lack{"fuse", err}
		}
		data := noise(12, fileBytes)
		back := w.ns.open(w, filepath.Join(dir, "file"), unix.O_RDWR)
		to := bare(0)
		to.direct = flags&unix.O_DIRECT != 0
		to.reset = func() { // of the size, and of pages, the kernel must know
			w.must(unix.Ftruncate(int(back), 0))
			w.must(unix.Ftruncate(int(back), int64(len(data))))
			f.put(data)
		}
		to.state = func([]engine.Op, []*target) []byte { return f.get() }
		to.reset()
		to.fd = w.ns.open(w, filepath.Join(dir, "file"), unix.O_RDWR|flags)
		return to, nil
	}
}

// fuse mounts a file system whose root holds f under the name "file".
func (ns *namespace) fuse(t *testing.T, f *fuseFile) (dir string, err error) {
	if dir, err = ns.folder(); err != nil {
		return "", err
	}
	var server *fuse.Server
	err = ns.do(func() (err error) {
		server, err = fs.Mount(dir, &fuseRoot{file: f}, &fs.Options{MountOptions: fuse.MountOptions{
			DirectMountStrict: true, // this very thread mounts; no fusermount elsewhere
			FsName:            "threeway",
			Name:              "threeway",
		}})
		return err
	})
	if err != nil {
		return "", err
	}
	t.Cleanup(func() { // all fds of it are closed by now
		_ = ns.do(func() error {
			err := server.Unmount()
			if err != nil {
				t.Errorf("unmount of %s: %v", dir, err)
				err = unix.Unmount(dir, unix.MNT_DETACH|unix.MNT_FORCE)
			}
			return err
		})
	})
	return dir, nil
}

// fuseRoot is the folder.
type fuseRoot struct {
	fs.Inode
	file *fuseFile
}

func (r *fuseRoot) OnAdd(ctx context.Context) {
	r.AddChild("file", r.NewPersistentInode(ctx, &fuseNode{f: r.file}, fs.StableAttr{Mode: syscall.S_IFREG}), true)
}

// bytesOf guards what the server's threads and the test share.
type bytesOf struct {
	mu   sync.Mutex
	data []byte // protected by mu
}

func (b *bytesOf) put(data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data[:0], data...)
}

func (b *bytesOf) get() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]byte(nil), b.data...)
}
