package emulator

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// vma is one mapping of a process, [start, end).
type vma struct {
	start, end uint64
	file       fileID
}

// procmapQuery is struct procmap_query (linux/fs.h, kernel 6.11).
type procmapQuery struct {
	size, flags, addr                  uint64
	start, end, vmaFlags, page, offset uint64
	inode                              uint64
	major, minor                       uint32
	nameLen, buildIDLen                uint32
	name, buildID                      uint64
}

// procmapIoctl is PROCMAP_QUERY.
const procmapIoctl = 0xc0686611

// mappingAt finds the mapping of the process that holds addr. ENOENT: there is
// none; other errors: the process cannot be looked at.
func mappingAt(pid int, addr uint64) (vma, syscall.Errno) {
	maps, err := os.Open(procPath(uint32(pid), "maps"))
	if err != nil {
		return vma{}, errnoOf(err)
	}
	defer maps.Close()
	q := procmapQuery{addr: addr}
	switch errno := query(int(maps.Fd()), &q); errno {
	case 0:
		return vma{q.start, q.end, fileID{unix.Mkdev(q.major, q.minor), q.inode}}, 0
	case unix.ENOTTY: // an older kernel
		return scan(maps, func(m vma) bool { return m.start <= addr && addr < m.end })
	default:
		return vma{}, errno
	}
}

// maps is whether a process has a mapping of the file.
func maps(pid int, file fileID) bool {
	f, err := os.Open(procPath(uint32(pid), "maps"))
	if err != nil {
		return false
	}
	defer f.Close()
	_, errno := scan(f, func(m vma) bool { return m.file == file })
	return errno == 0
}

// scan reads the text of /proc/PID/maps up to the first mapping that fits.
func scan(f *os.File, fits func(vma) bool) (vma, syscall.Errno) {
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if m, ok := parseMapping(lines.Text()); ok && fits(m) {
			return m, 0
		}
	}
	if err := lines.Err(); err != nil {
		return vma{}, errnoOf(err)
	}
	return vma{}, unix.ENOENT
}

func parseMapping(line string) (vma, bool) {
	var m vma
	var mode string
	var offset uint64
	var major, minor uint32
	n, err := fmt.Fscanf(strings.NewReader(line), "%x-%x %s %x %x:%x %d",
		&m.start, &m.end, &mode, &offset, &major, &minor, &m.file.ino)
	m.file.dev = unix.Mkdev(major, minor)
	return m, err == nil && n == 7
}
