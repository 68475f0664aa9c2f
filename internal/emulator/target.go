package emulator

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// What the supervisor reads of the program's threads. Every answer may be
// outdated, or another thread's that got the same id: listener.waits tells.

// readMemory copies len(buf) bytes at addr of the thread's memory, or none:
// EFAULT, EPERM (not allowed), ESRCH (gone).
func readMemory(tid uint32, addr uint64, buf []byte) syscall.Errno {
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}
	n, err := unix.ProcessVMReadv(int(tid), local, remote, 0)
	if err != nil {
		return errnoOf(err)
	}
	if n != len(buf) {
		return unix.EFAULT
	}
	return 0
}

// writeMemory is the way back; see readMemory.
func writeMemory(tid uint32, addr uint64, buf []byte) syscall.Errno {
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}
	n, err := unix.ProcessVMWritev(int(tid), local, remote, 0)
	if err != nil {
		return errnoOf(err)
	}
	if n != len(buf) {
		return unix.EFAULT
	}
	return 0
}

// readText reads a string that ends with a NUL, page by page, because the page
// after it may not exist. ENAMETOOLONG: it is none of a path's length.
func readText(tid uint32, addr uint64) (string, syscall.Errno) {
	const page = 4096
	var text []byte
	for len(text) < unix.PathMax {
		part := make([]byte, min(page-int(addr%page), 256))
		if errno := readMemory(tid, addr, part); errno != 0 {
			return "", errno
		}
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return string(append(text, part[:end]...)), 0
		}
		text = append(text, part...)
		addr += uint64(len(part))
	}
	return "", unix.ENAMETOOLONG
}

// absolutePath is where a path of the thread leads, by its text: symbolic
// links are not followed. "" if the folder it starts from is unknown.
func absolutePath(tid uint32, dirfd int32, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	link := procPath(tid, "cwd")
	if dirfd != unix.AT_FDCWD {
		link = procPath(tid, "fd/"+strconv.Itoa(int(dirfd)))
	}
	base, err := os.Readlink(link)
	if err != nil || !filepath.IsAbs(base) {
		return ""
	}
	return filepath.Join(base, path)
}

// processOf is the process that a thread belongs to; 0 if it is gone.
func processOf(tid uint32) int {
	status, _ := os.ReadFile(procPath(tid, "status"))
	_, rest, _ := bytes.Cut(status, []byte("\nTgid:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	pid, _ := strconv.Atoi(string(line))
	return pid
}

// nameOf is what ps shows of a process.
func nameOf(pid int) string {
	comm, _ := os.ReadFile(procPath(uint32(pid), "comm"))
	return strings.TrimSpace(string(comm))
}

func procPath(id uint32, file string) string {
	return "/proc/" + strconv.FormatUint(uint64(id), 10) + "/" + file
}

// errnoOf is the errno inside err; EIO if there is none.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if err == nil || errors.As(err, &errno) {
		return errno
	}
	return unix.EIO
}
