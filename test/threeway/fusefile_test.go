package threeway

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// fuseFile is a file in memory, of at most fuseBytes, and how its server
// behaves.
type fuseFile struct {
	data       fuseData
	flags      uint32 // of its open: FOPEN_...
	cut        int64  // no transfer crosses a multiple of this; 0: all do
	late       bool   // answers wait until others had their chance
	interrupts bool   // every second request gets EINTR
	zones      bool   // the errors of zoneErrnos, by offset; no transfer crosses a zone

	count atomic.Int64 // requests so far
}

const (
	fuseBytes = 1 << 20
	zoneBytes = 8 << 10
)

// zoneErrno is what transfers in the zone of off get. Every other one works,
// so that progress comes before an error.
func zoneErrno(off int64) syscall.Errno {
	errnos := [...]syscall.Errno{
		syscall.EIO, syscall.EAGAIN, syscall.EBUSY, syscall.ENOMEM, syscall.ECANCELED, syscall.ENOSYS,
		syscall.EPERM, syscall.EACCES, syscall.EOPNOTSUPP, syscall.EINVAL, syscall.ENOSPC, syscall.ESTALE,
		syscall.ETIMEDOUT, syscall.EBADF, syscall.ESPIPE, syscall.EFAULT, syscall.ENODEV, syscall.EALREADY,
	}
	if zone := off / zoneBytes; zone%2 == 1 {
		return errnos[zone/2%int64(len(errnos))]
	}
	return 0
}

// admit says how many of n bytes at off one transfer may move, or why none.
func (f *fuseFile) admit(off, n int64) (int64, syscall.Errno) {
	turn := f.count.Add(1)
	if f.interrupts && turn%2 == 0 {
		return 0, syscall.EINTR
	}
	if f.late {
		for range (off/512*7 + turn) % 40 {
			runtime.Gosched()
		}
	}
	if f.cut > 0 {
		n = min(n, f.cut-off%f.cut)
	}
	if f.zones {
		if errno := zoneErrno(off); errno != 0 {
			return 0, errno
		}
		n = min(n, zoneBytes-off%zoneBytes)
	}
	return n, 0
}

// fuseNode is a file as the kernel sees it.
type fuseNode struct {
	fs.Inode
	as   *fuseFile // how it behaves
	data *fuseData
}

// fuseData is what is in a file.
type fuseData struct {
	mu    sync.Mutex
	bytes []byte // protected by mu
}

// resizeLocked makes d lenBytes long, with zeros where it grows.
func (d *fuseData) resizeLocked(lenBytes int) {
	if more := lenBytes - len(d.bytes); more > 0 {
		d.bytes = append(d.bytes, make([]byte, more)...)
	}
	d.bytes = d.bytes[:lenBytes]
}

var (
	_ fs.NodeOpener    = (*fuseNode)(nil)
	_ fs.NodeReader    = (*fuseNode)(nil)
	_ fs.NodeWriter    = (*fuseNode)(nil)
	_ fs.NodeGetattrer = (*fuseNode)(nil)
	_ fs.NodeSetattrer = (*fuseNode)(nil)
)

func (n *fuseNode) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, n.as.flags, 0
}

func (n *fuseNode) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	most, errno := n.as.admit(off, int64(len(dest)))
	if errno != 0 {
		return nil, errno
	}
	d := n.data
	d.mu.Lock()
	defer d.mu.Unlock()
	if off >= int64(len(d.bytes)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest[:most], d.bytes[off:])]), 0
}

func (n *fuseNode) Write(_ context.Context, _ fs.FileHandle, from []byte, off int64) (uint32, syscall.Errno) {
	most, errno := n.as.admit(off, int64(len(from)))
	if errno != 0 {
		return 0, errno
	}
	if off > fuseBytes-most {
		return 0, syscall.EFBIG
	}
	d := n.data
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resizeLocked(max(len(d.bytes), int(off+most)))
	return uint32(copy(d.bytes[off:], from[:most])), 0
}

func (n *fuseNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.data.mu.Lock()
	defer n.data.mu.Unlock()
	out.Mode, out.Size = syscall.S_IFREG|0o600, uint64(len(n.data.bytes))
	return 0
}

func (n *fuseNode) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	d := n.data
	d.mu.Lock()
	defer d.mu.Unlock()
	if size, ok := in.GetSize(); ok {
		if size > fuseBytes {
			return syscall.EFBIG
		}
		d.resizeLocked(int(size))
	}
	out.Mode, out.Size = syscall.S_IFREG|0o600, uint64(len(d.bytes))
	return 0
}
