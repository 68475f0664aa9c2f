package emulator

import "golang.org/x/sys/unix"

type callKind int

const (
	callOpen callKind = iota
	callOpen2
	callStat
	callStatx
	callAccess
)

// pathCall is a system call that names a file, whichever of its variants.
type pathCall struct {
	kind  callKind
	dirfd int32
	path  uint64 // address of the text; with AT_EMPTY_PATH it may be 0
	flags int    // open: flags; statx and fstatat: AT_*; access: the mode
	arg   uint64 // openat2: address of struct open_how; stat, statx: of the result
	mask  uint32 // statx
}

// pathCallOf reads the arguments of the calls that filter.go traps for their
// path; false: it is none of them.
func pathCallOf(n *notification) (pathCall, bool) {
	a := n.args
	at := int32(a[0])
	switch n.nr {
	case sysOpen:
		return pathCall{callOpen, unix.AT_FDCWD, a[0], int(int32(a[1])), 0, 0}, true
	case unix.SYS_OPENAT:
		return pathCall{callOpen, at, a[1], int(int32(a[2])), 0, 0}, true
	case unix.SYS_OPENAT2:
		return pathCall{callOpen2, at, a[1], 0, a[2], 0}, true
	case unix.SYS_FSTAT:
		return pathCall{callStat, at, 0, unix.AT_EMPTY_PATH, a[1], 0}, true
	case sysStat:
		return pathCall{callStat, unix.AT_FDCWD, a[0], 0, a[1], 0}, true
	case sysLstat:
		return pathCall{callStat, unix.AT_FDCWD, a[0], unix.AT_SYMLINK_NOFOLLOW, a[1], 0}, true
	case unix.SYS_NEWFSTATAT:
		return pathCall{callStat, at, a[1], int(int32(a[3])), a[2], 0}, true
	case unix.SYS_STATX:
		return pathCall{callStatx, at, a[1], int(int32(a[2])), a[4], uint32(a[3])}, true
	case sysAccess:
		return pathCall{callAccess, unix.AT_FDCWD, a[0], int(int32(a[1])), 0, 0}, true
	case unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2:
		return pathCall{callAccess, at, a[1], int(int32(a[2])), 0, 0}, true
	}
	return pathCall{}, false
}

// mayMeanDescriptor is whether the call is about dirfd itself if it has no
// path or an empty one.
func (c pathCall) mayMeanDescriptor() bool {
	return (c.kind == callStat || c.kind == callStatx) && c.flags&unix.AT_EMPTY_PATH != 0
}
