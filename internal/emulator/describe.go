package emulator

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// describe answers stat and access of a file of ours.
func (s *supervisor) describe(n *notification, c pathCall, target name) {
	errno := s.exists(target)
	if errno == 0 {
		switch c.kind {
		case callAccess:
			errno = access(target, c.flags)
		case callStat:
			errno = s.stat(n, c, target)
		case callStatx:
			errno = s.statx(n, c, target)
		}
	}
	s.listener.reply(n.id, 0, errno)
}

func (s *supervisor) exists(target name) syscall.Errno {
	switch target.kind {
	case node:
		if target.index < len(s.nodes) {
			return 0
		}
	case sysfs:
		return errnoOf(unix.Access(s.tree.path(target.rest), unix.F_OK))
	}
	return unix.ENOENT
}

// access grants what nodeMode and the files of sysfs grant.
func access(target name, mode int) syscall.Errno {
	if target.kind == node && mode&unix.X_OK != 0 || target.kind == sysfs && mode&unix.W_OK != 0 {
		return unix.EACCES
	}
	return 0
}

// What stat says of a node.
const (
	nodeMode  = unix.S_IFCHR | 0o600
	nodeMajor = 511 // in the range that the kernel hands out
)

func (s *supervisor) stat(n *notification, c pathCall, target name) syscall.Errno {
	var st unix.Stat_t
	if target.kind == sysfs {
		if err := unix.Lstat(s.tree.path(target.rest), &st); err != nil {
			return errnoOf(err)
		}
	} else {
		st.Ino = uint64(1 + target.index)
		st.Nlink = 1
		st.Mode = nodeMode
		st.Uid, st.Gid = uint32(os.Getuid()), uint32(os.Getgid())
		st.Rdev = unix.Mkdev(nodeMajor, uint32(target.index))
		st.Blksize = 4096
	}
	return s.give(n, c.arg, bytesOf(&st))
}

func (s *supervisor) statx(n *notification, c pathCall, target name) syscall.Errno {
	var st unix.Statx_t
	if target.kind == sysfs {
		if err := unix.Statx(unix.AT_FDCWD, s.tree.path(target.rest), unix.AT_SYMLINK_NOFOLLOW, int(c.mask), &st); err != nil {
			return errnoOf(err)
		}
	} else {
		st.Mask = unix.STATX_BASIC_STATS
		st.Ino = uint64(1 + target.index)
		st.Nlink = 1
		st.Mode = nodeMode
		st.Uid, st.Gid = uint32(os.Getuid()), uint32(os.Getgid())
		st.Rdev_major, st.Rdev_minor = nodeMajor, uint32(target.index)
		st.Blksize = 4096
	}
	return s.give(n, c.arg, bytesOf(&st))
}

// give writes a result where the thread wants it.
func (s *supervisor) give(n *notification, addr uint64, result []byte) syscall.Errno {
	if !s.listener.waits(n.id) {
		return unix.ESRCH
	}
	return writeMemory(n.tid, addr, result)
}
