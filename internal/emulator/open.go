package emulator

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// answerPath answers a call that names a file of ours.
func (s *supervisor) answerPath(n *notification, c pathCall, target name) {
	switch c.kind {
	case callOpen2:
		how := make([]byte, 8) // struct open_how begins with the flags
		if errno := readMemory(n.tid, c.arg, how); errno != 0 {
			s.listener.reply(n.id, 0, errno)
			return
		}
		c.flags = int(binary.LittleEndian.Uint64(how))
		s.open(n, c, target)
	case callOpen:
		s.open(n, c, target)
	default:
		s.describe(n, c, target)
	}
}

// open answers with a descriptor of a device, of a file of the sysfs tree, or
// of a command's answer.
func (s *supervisor) open(n *notification, c pathCall, target name) {
	var fd int
	var errno syscall.Errno
	switch target.kind {
	case node:
		fd, errno = s.openNode(target.index, c.flags)
	case sysfs:
		var err error
		fd, err = s.tree.open(target.rest, c.flags)
		errno = errnoOf(err)
	case control:
		if !s.listener.waits(n.id) { // a command is not undone
			return
		}
		fd, errno = s.command(target.rest)
	}
	got := -1
	if errno == 0 {
		got, errno = s.listener.install(n.id, fd, c.flags&unix.O_CLOEXEC != 0)
		_ = unix.Close(fd)
	}
	if errno != 0 {
		s.listener.reply(n.id, 0, errno)
	}
	s.report.event("%s open of %v, flags %#x: fd %d, %s", who(int(n.tid), nameOf(int(n.tid))), target, c.flags, got, outcome(errno))
}

// openNode makes a new open file of a device; the caller owns it.
func (s *supervisor) openNode(index, flags int) (int, syscall.Errno) {
	switch {
	case index >= len(s.nodes):
		return -1, unix.ENOENT
	case flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL:
		return -1, unix.EEXIST
	case flags&unix.O_DIRECTORY != 0:
		return -1, unix.ENOTDIR
	}
	if errno := s.applyRule("open"); errno != 0 {
		return -1, errno
	}
	fd, err := reopen(s.nodes[index], flags)
	return fd, errnoOf(err)
}
