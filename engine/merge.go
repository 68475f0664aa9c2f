package engine

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Neighbours in a batch that are contiguous in file and memory are moved as
// one, a run. Its first op stands for all in the claims; the others are never
// looked at. Only where one transfer does what the many would have done:
//
//   - files that hold bytes in a row (uringfd.go), where that is what two reads
//     give, too; not O_APPEND, where the kernel ignores offsets;
//   - inside the file: beyond its end an O_DIRECT read clears memory that the
//     reads of the ops behind would not touch;
//   - under O_DIRECT ops of which each is aligned: merging must not turn the
//     EINVAL of one into a success;
//   - ops of equal Group: core's promise about memory.
//
// If a run does not come back whole, each op that it has not covered is done
// again alone, so every result is its own.

// mergedBytes bounds a run.
const mergedBytes = 1 << 20

// directAlign is the least that an op is aligned to that may be merged under
// O_DIRECT. A device with larger sectors wants more, and so do the file systems
// on it; their block size is never less than what they want.
const directAlign = 4096

// precedes reports whether next goes on in file and memory where op ends.
func (op *Op) precedes(next *Op) bool {
	return next.Addr == op.Addr+HostAddr(op.Len) && next.Off == op.Off+int64(op.Len) &&
		next.FD == op.FD && next.Group == op.Group &&
		op.Len > 0 && next.Len > 0 && next.Addr > op.Addr // not past the last address
}

// merge makes a run of op i and as many behind it as may be, or leaves it
// alone. It gives the number of ops and their bytes.
func (b *Batch) merge(i int, files *mergeFiles) (ops int, lenBytes uint64) {
	first := &b.Ops[i]
	f := files.of(b, first.FD)
	end := func(op *Op) uint64 { return uint64(op.Off) + op.Len }
	fits := func(op *Op) bool {
		return end(op) <= f.size && (uint64(op.Addr)|op.Len|uint64(op.Off))&f.mask == 0
	}
	ops, lenBytes = 1, first.Len
	if !fits(first) {
		return ops, lenBytes
	}
	for j := i + 1; j < len(b.Ops); j++ {
		op := &b.Ops[j]
		if !b.Ops[j-1].precedes(op) || !fits(op) || lenBytes+op.Len > mergedBytes {
			break
		}
		op.slices = 1
		ops, lenBytes = ops+1, lenBytes+op.Len
	}
	if ops > 1 {
		first.slices = -int32(ops)
	}
	return ops, lenBytes
}

// mergeFiles is what merge knows of the files of one batch. It is asked only
// about ops that have a neighbour: at most five system calls for each fd, of which
// the batch keeps what the participants ask, too.
type mergeFiles struct {
	known [8]mergeFacts // by fd, modulo
}

type mergeFacts struct {
	fd   int32
	size uint64 // bytes; 0: nothing may be merged
	mask uint64 // bits that must be clear in an op's address, length and offset
}

func (c *mergeFiles) of(b *Batch, fd int32) *mergeFacts {
	f := &c.known[uint32(fd)%8]
	if f.fd != fd+1 { // 0: not asked
		*f = mergeFacts{fd: fd + 1}
		f.size, f.mask = b.inquire(fd)
	}
	return f
}

// inquire asks about fd what mergeFacts holds.
func (b *Batch) inquire(fd int32) (size, mask uint64) {
	var q fdQuestion
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_APPEND != 0 {
		return 0, 0
	}
	yes := q.inARow(fd)
	b.files.note(fd, askInARow, yes)
	if !yes {
		return 0, 0
	}
	align := uint64(q.stat.Blksize)
	size = uint64(max(0, q.stat.Size))
	if q.stat.Mode&unix.S_IFMT == unix.S_IFBLK { // its node says nothing of the device
		var sector int32
		if !ask(fd, unix.BLKGETSIZE64, unsafe.Pointer(&size)) || !ask(fd, unix.BLKSSZGET, unsafe.Pointer(&sector)) {
			return 0, 0
		}
		align = uint64(sector)
	}
	if flags&unix.O_DIRECT == 0 {
		return size, 0
	}
	if align = max(align, directAlign); align&(align-1) != 0 {
		return 0, 0
	}
	return size, align - 1
}

// ask has a block device write the answer to answer.
func ask(fd int32, question uintptr, answer unsafe.Pointer) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), question, uintptr(answer))
	return errno == 0
}

// unit is the part of the batch at at: its first or only op, where in that it
// begins, and its length.
func (b *Batch) unit(at uint64) (op *Op, start, n uint64) {
	op = &b.Ops[at>>32]
	if op.slices < 0 {
		last := &b.Ops[at>>32+uint64(-op.slices)-1]
		return op, 0, uint64(last.Off-op.Off) + last.Len
	}
	start, n = op.extent(uint32(at))
	return op, start, n
}

// settle records that the unit at at moved r bytes, or failed with -errno. Of a
// run, alone gives the result of each op that those bytes do not cover; nil:
// they get -EIO.
func (b *Batch) settle(at uint64, r int64, alone func(*Op) int64) {
	op, start, n := b.unit(at)
	if op.slices >= 0 {
		op.settle(start, n, r)
		return
	}
	members := b.Ops[at>>32:][:-op.slices]
	for i := range members {
		m := &members[i]
		switch {
		case r >= int64(m.Len):
			m.Result = int64(m.Len)
			r -= int64(m.Len)
			continue
		case alone == nil:
			m.Result = -int64(syscall.EIO)
		default:
			m.Result = alone(m)
		}
		r = -1
	}
}

// alone moves op with plain system calls.
func (b *Batch) alone(io IO, op *Op) int64 {
	return transfer(io, b.Kind, op.FD, op.Addr, op.Len, op.Off)
}

// perform does the unit at at with plain system calls; as one, if it is a run.
func (b *Batch) perform(io IO, at uint64) {
	if op, start, n := b.unit(at); !op.stopped(start) {
		r := transfer(io, b.Kind, op.FD, op.Addr+HostAddr(start), n, op.Off+int64(start))
		b.settle(at, r, func(m *Op) int64 { return b.alone(io, m) })
	}
}
