//go:build threeway

package threeway

import (
	"context"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// fuseFile is a file in memory, of at most fuseBytes, and how its server
// behaves.
type fuseFile struct {
	bytesOf
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

// fuseNode is the file as the kernel sees it.
type fuseNode struct {
	fs.Inode
	f *fuseFile
}

var (
	_ fs.NodeOpener    = (*fuseNode)(nil)
	_ fs.NodeReader    = (*fuseNode)(nil)
	_ fs.NodeWriter    = (*fuseNode)(nil)
	_ fs.NodeGetattrer = (*fuseNode)(nil)
	_ fs.NodeSetattrer = (*fuseNode)(nil)
)

func (n *fuseNode) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, n.f.flags, 0
}

func (n *fuseNode) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	most, errno := n.f.admit(off, int64(len(dest)))
	if errno != 0 {
		return nil, errno
	}
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	if off >= int64(len(n.f.data)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest[:most], n.f.data[off:])]), 0
}

func (n *fuseNode) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	most, errno := n.f.admit(off, int64(len(data)))
	if errno != 0 {
		return 0, errno
	}
	if off > fuseBytes-most {
		return 0, syscall.EFBIG
	}
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	if more := off + most - int64(len(n.f.data)); more > 0 {
		n.f.data = append(n.f.data, make([]byte, more)...)
	}
	return uint32(copy(n.f.data[off:], data[:most])), 0
}

func (n *fuseNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	out.Mode, out.Size = syscall.S_IFREG|0o600, uint64(len(n.f.data))
	return 0
}

func (n *fuseNode) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	if size, ok := in.GetSize(); ok {
		if size > fuseBytes {
			return syscall.EFBIG
		}
		n.f.data = append(n.f.data[:min(size, uint64(len(n.f.data)))], make([]byte, max(size, uint64(len(n.f.data)))-uint64(len(n.f.data)))...)
	}
	out.Mode, out.Size = syscall.S_IFREG|0o600, uint64(len(n.f.data))
	return 0
}
