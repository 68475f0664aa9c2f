package emulator

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fileID tells an open file from every other that exists.
type fileID struct{ dev, ino uint64 }

// newMemory makes an empty file in memory. The caller owns the descriptor.
func newMemory(name string) (int, fileID, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fileID{}, fmt.Errorf("memfd_create %s: %w", name, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return -1, fileID{}, fmt.Errorf("fstat of memfd %s: %w", name, err)
	}
	return fd, fileID{uint64(st.Dev), st.Ino}, nil
}

// deviceOf is the device that a descriptor of the thread stands for, told by
// the name of its memfd, which outlives every record of it; -1: it is none.
// Nothing of the file itself is touched.
func deviceOf(tid uint32, fd int) int {
	name, err := os.Readlink(procPath(tid, "fd/"+strconv.Itoa(fd)))
	rest, ours := strings.CutPrefix(name, "/memfd:"+nodePrefix)
	if err != nil || !ours {
		return -1
	}
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	index, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return index
}

// openFlags are the flags of a descriptor as open(2) takes them, O_CLOEXEC
// among them; false if it is closed.
func openFlags(tid uint32, fd int) (int, bool) {
	info, err := os.ReadFile(procPath(tid, "fdinfo/"+strconv.Itoa(fd)))
	if err != nil {
		return 0, false
	}
	_, rest, _ := bytes.Cut(info, []byte("flags:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	flags, err := strconv.ParseInt(string(line), 8, 64)
	return int(flags), err == nil
}

// reopen gives a new open file on the same memory, with its own flags.
func reopen(fd, flags int) (int, error) {
	keep := flags & (unix.O_ACCMODE | unix.O_NONBLOCK | unix.O_APPEND)
	path := "/proc/self/fd/" + strconv.Itoa(fd)
	got, err := unix.Open(path, keep|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", path, err)
	}
	return got, nil
}
