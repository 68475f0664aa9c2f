package engine

import "golang.org/x/sys/unix"

// A ring is given only files that hold bytes in a row: regular files of file
// systems that store, and block devices. There it gives the answer that pread
// and pwrite give. Elsewhere it may not: it consumes streams, which positioned
// calls refuse with ESPIPE; and where it finds a file that can be polled, as
// those of pidfds and message queues, which fstat calls regular, it waits for
// it, perhaps for ever, where pread answers at once. FUSE stores, but without
// its page cache a ring asks after a short answer for the same bytes again and
// counts them twice (seen on 6.18).
//
// Each fd is asked about once in a batch (files.go), since it may be another file
// in the next one: two system calls, some 0.3 µs, for each fd in each batch (a
// network file system may ask its server).

// fdQuestion asks about one fd.
type fdQuestion struct {
	stat unix.Stat_t // valid after a yes
	fs   unix.Statfs_t
}

// isDirect reports whether fd has the flags of flags, and not O_APPEND.
func isDirect(fd int32, flags int) bool {
	has, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && has&flags == flags && has&unix.O_APPEND == 0
}

// inARow reports whether fd is a file that holds bytes in a row.
func (q *fdQuestion) inARow(fd int32) bool {
	if unix.Fstat(int(fd), &q.stat) != nil {
		return false
	}
	switch q.stat.Mode & unix.S_IFMT {
	case unix.S_IFBLK:
		return true
	case unix.S_IFREG:
		return unix.Fstatfs(int(fd), &q.fs) == nil && stores(uint32(q.fs.Type))
	}
	return false
}

// stores reports whether the file system of that magic number (statfs(2),
// linux/magic.h, or its own source) is one of those known to store. Kernel
// interfaces that look like file systems are too many to list instead.
func stores(magic uint32) bool {
	switch magic {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.HUGETLBFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC,
		unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, unix.V9FS_MAGIC,
		unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.ISOFS_SUPER_MAGIC, unix.UDF_SUPER_MAGIC,
		unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC,
		0x3153464a, // JFS
		0x01161970, // GFS2
		0x2fc12fc1, // ZFS
		0xca451a4e, // bcachefs
		0x0bd00bd0, // Lustre
		0x47504653, // GPFS
		0x19830326: // BeeGFS
		return true
	}
	return false
}
