package core

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// guessedAlign is the direct-I/O alignment in bytes to hold a request against
// where the kernel does not tell (statx without STATX_DIOALIGN, before 6.1):
// the logical block of nearly every disk.
const guessedAlign = 512

// ExplainEINVAL says why the kernel answered EINVAL to a transfer of lenBytes
// between host address addr and fd at off: which of the three an O_DIRECT file
// finds misaligned, and the file's alignment from statx. Empty: the file is
// not O_DIRECT, or all three are aligned. It makes two system calls.
func ExplainEINVAL(fd int32, addr, lenBytes uint64, off int64) string {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_DIRECT == 0 {
		return ""
	}
	mem, file, known := directAlign(int(fd))
	if known && file == 0 {
		return "the file does not support O_DIRECT"
	}
	var wrong []string
	for _, part := range []struct {
		name         string
		value, align uint64
	}{{"address", addr, mem}, {"length", lenBytes, file}, {"offset", uint64(off), file}} {
		if part.value%part.align != 0 {
			wrong = append(wrong, fmt.Sprintf("%s is not a multiple of %d", part.name, part.align))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	source := "the file's alignment"
	if !known {
		source = "assumed: this kernel does not tell the file's alignment"
	}
	return "O_DIRECT: " + strings.Join(wrong, ", ") + " (" + source + ")"
}

// directAlign is what O_DIRECT on fd needs of memory and of file ranges, in
// bytes; known is false where the kernel does not tell.
func directAlign(fd int) (mem, file uint64, known bool) {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	if err != nil || st.Mask&unix.STATX_DIOALIGN == 0 {
		return guessedAlign, guessedAlign, false
	}
	if st.Dio_mem_align == 0 || st.Dio_offset_align == 0 {
		return 0, 0, true
	}
	return uint64(st.Dio_mem_align), uint64(st.Dio_offset_align), true
}
