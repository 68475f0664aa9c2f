package uring

import (
	"syscall"
	"unsafe"
)

// The library supports little-endian LP64 only; these sizes are the kernel's.
var (
	_ [0]struct{} = [unsafe.Sizeof(SQE{}) - 64]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(CQE{}) - 16]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(Params{}) - 120]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(RingUpdate{}) - 16]struct{}{}
)

// attach maps the queues of a new ring and finds its way in them. What it has
// mapped by the time of an error is Close's.
func (r *Ring) attach(p *Params) (errno syscall.Errno) {
	entries := int(p.SQEntries)
	sq, cq := 0, int(p.CQOffset.Cqes)+int(p.CQEntries)*int(unsafe.Sizeof(CQE{}))
	if r.flags&SetupNoSQArray == 0 {
		sq = int(p.SQOffset.Array) + entries*4
	}
	if p.Features&FeatSingleMmap != 0 {
		sq = max(sq, cq)
	} else if r.maps[1], errno = r.kernel.Map(r.fd, OffCQRing, cq); errno != 0 { // before 5.4
		return errno
	}
	if r.maps[0], errno = r.kernel.Map(r.fd, OffSQRing, sq); errno != 0 {
		return errno
	}
	if r.maps[2], errno = r.kernel.Map(r.fd, OffSQEs, entries*int(unsafe.Sizeof(SQE{}))); errno != 0 {
		return errno
	}
	sqRing, cqRing := r.maps[0], r.maps[0]
	if r.maps[1] != nil {
		cqRing = r.maps[1]
	}
	r.sqHead, r.sqTail = word(sqRing, p.SQOffset.Head), word(sqRing, p.SQOffset.Tail)
	r.cqHead, r.cqTail = word(cqRing, p.CQOffset.Head), word(cqRing, p.CQOffset.Tail)
	r.mask, r.cqMask = *word(sqRing, p.SQOffset.RingMask), *word(cqRing, p.CQOffset.RingMask)
	r.sqes = unsafe.Slice((*SQE)(unsafe.Pointer(unsafe.SliceData(r.maps[2]))), entries)
	r.cqes = unsafe.Slice((*CQE)(unsafe.Pointer(&cqRing[p.CQOffset.Cqes])), p.CQEntries)
	r.iovecs = make([]iovec, entries)
	if r.flags&SetupNoSQArray == 0 {
		for i := range uint32(entries) { // entry i is always the one at place i
			*word(sqRing, p.SQOffset.Array+4*i) = i
		}
	}
	return 0
}

func word(m []byte, off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&m[off])) }

// address is where the kernel finds v. The collector does not move it, and r
// keeps it alive.
func (v *iovec) address() uintptr { return uintptr(unsafe.Pointer(v)) }
