package emulator

import "golang.org/x/sys/unix"

// auditArch is what seccomp says of a system call of this architecture's own
// table; calls of other tables (32-bit) are not looked at.
const auditArch = unix.AUDIT_ARCH_AARCH64

// System calls that this architecture does not have, as numbers that no call
// has.
const (
	sysOpen   = -1
	sysStat   = -2
	sysLstat  = -3
	sysAccess = -4
)
