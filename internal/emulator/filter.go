package emulator

import (
	"slices"

	"golang.org/x/sys/unix"
)

// The requests of the device, as docs/abi.md §5 gives them.
const (
	cmdMap   = 0x40388801
	cmdUnmap = 0x40388802
)

// Offsets in struct seccomp_data (linux/seccomp.h). Both architectures are
// little-endian: the low half of an argument comes first.
const (
	offNr   = 0
	offArch = 4
)

func offArg(i uint32) uint32 { return 16 + 8*i }

// whole are the system calls that are trapped whatever their arguments: those
// that name a file, whose path the filter cannot read, and fstat, which must
// not call a device a regular file (Python's mmap asks). None of them is on an
// I/O path.
func whole() []int {
	calls := []int{
		unix.SYS_OPENAT, unix.SYS_OPENAT2, sysOpen,
		unix.SYS_STATX, unix.SYS_NEWFSTATAT, unix.SYS_FSTAT, sysStat, sysLstat,
		unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, sysAccess,
	}
	return slices.DeleteFunc(calls, func(nr int) bool { return nr < 0 })
}

// filter is the program that decides which system calls the supervisor sees:
//
//	the calls of whole
//	ioctl MAP and UNMAP
//	mmap of a file for writing, shared, or private where the kernel chooses
//	the address (the dynamic linker's own mappings are fixed)
//
// Everything else is allowed; for most calls that does not depend on their
// arguments, and the kernel remembers it and runs no filter.
func filter() []unix.SockFilter {
	var a assembler
	a.load(offArch)
	a.jump(unix.BPF_JEQ, auditArch, "", "allow")
	a.load(offNr)
	for _, nr := range whole() {
		a.jump(unix.BPF_JEQ, uint32(nr), "notify", "")
	}
	a.jump(unix.BPF_JEQ, unix.SYS_IOCTL, "ioctl", "")
	a.jump(unix.BPF_JEQ, unix.SYS_MMAP, "mmap", "allow")

	a.label("ioctl")
	a.load(offArg(1))
	a.jump(unix.BPF_JEQ, cmdMap, "notify", "")
	a.jump(unix.BPF_JEQ, cmdUnmap, "notify", "allow")

	a.label("mmap")
	a.load(offArg(4))
	a.jump(unix.BPF_JSET, 1<<31, "allow", "") // no descriptor
	a.load(offArg(2))
	a.jump(unix.BPF_JSET, unix.PROT_WRITE, "", "allow")
	a.load(offArg(3))
	a.and(unix.MAP_TYPE | unix.MAP_ANONYMOUS)
	a.jump(unix.BPF_JEQ, unix.MAP_SHARED, "notify", "")
	a.jump(unix.BPF_JEQ, unix.MAP_SHARED_VALIDATE, "notify", "")
	a.load(offArg(3))
	a.and(unix.MAP_TYPE | unix.MAP_ANONYMOUS | unix.MAP_FIXED | unix.MAP_DENYWRITE)
	a.jump(unix.BPF_JEQ, unix.MAP_PRIVATE, "notify", "allow")

	a.label("notify")
	a.ret(unix.SECCOMP_RET_USER_NOTIF)
	a.label("allow")
	a.ret(unix.SECCOMP_RET_ALLOW)
	return a.program()
}
