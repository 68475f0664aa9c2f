package engine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Positioned calls refuse streams (pipes, sockets, terminals) with ESPIPE. A
// ring does not: it would consume the stream, and might wait for it for ever.
// So a lane asks about each fd once in a batch before it gives the fd to its
// ring. The question is a preadv or pwritev of no segments: the kernel looks
// whether the file allows positioned transfers in that direction, exactly as
// in pread and pwrite, and does not call the file itself (fs/read_write.c,
// do_preadv). lseek and fstat would answer other questions: some files of /proc
// cannot seek and yet take pread, others take pread and refuse pwrite. The cost
// is two system calls, some 0.2 µs, for each fd in each batch and participant.

// verdict is what is known about an fd.
type verdict uint8

const (
	unsure   verdict = iota // only pread and pwrite know
	seekable                // a ring gives the answer that pread gives
	stream                  // ESPIPE
)

// fdCache holds the verdicts of one batch. An fd may be another file in the
// next one.
type fdCache struct {
	fs    unix.Statfs_t
	call  uintptr // number of the system call that asks
	round uint32
	known [64]knownFD // by fd, modulo; a collision costs one more question
}

type knownFD struct {
	fd    int32
	round uint32
	verdict
}

// forget begins a new batch.
func (c *fdCache) forget(k Kind) {
	c.call = unix.SYS_PREADV
	if k == Write {
		c.call = unix.SYS_PWRITEV
	}
	if c.round++; c.round == 0 {
		c.known, c.round = [64]knownFD{}, 1
	}
}

func (c *fdCache) ask(fd int32) verdict {
	k := &c.known[uint32(fd)%64]
	if k.round != c.round || k.fd != fd {
		*k = knownFD{fd, c.round, c.inquire(fd)}
	}
	return k.verdict
}

func (c *fdCache) inquire(fd int32) verdict {
	switch _, _, errno := unix.Syscall6(c.call, uintptr(fd), 0, 0, 0, 0, 0); errno {
	case 0:
		// FUSE without its page cache: after a short answer the ring asks for
		// the same bytes again and counts them twice (seen on 6.18).
		if unix.Fstatfs(int(fd), &c.fs) != nil || c.fs.Type == unix.FUSE_SUPER_MAGIC {
			return unsure
		}
		return seekable
	case syscall.EBADF, syscall.EINVAL: // EBADF: also a file open the other way only; EINVAL: it has no such operation
		return seekable
	case syscall.ESPIPE:
		return stream
	default:
		return unsure
	}
}
