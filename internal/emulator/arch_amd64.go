package emulator

import "golang.org/x/sys/unix"

// auditArch is what seccomp says of a system call of this architecture's own
// table; calls of other tables (32-bit) are not looked at.
const auditArch = unix.AUDIT_ARCH_X86_64

// System calls of which arm64 has only newer variants.
const (
	sysOpen   = unix.SYS_OPEN
	sysStat   = unix.SYS_STAT
	sysLstat  = unix.SYS_LSTAT
	sysAccess = unix.SYS_ACCESS
)
