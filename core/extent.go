package core

import "math"

// The arithmetic of resolve, free of state. Nothing here overflows.

// fileRange says why [off, off+n) is no range of a file; 0: it is one.
func fileRange(off int64, n uint64) Reason {
	switch {
	case off < 0:
		return ReasonNegativeOffset
	case n > uint64(math.MaxInt64-off):
		return ReasonFileRange
	}
	return 0
}

// cpuExtent is the address of the n bytes at bufOff in process memory at buf;
// false: the offset is negative or the end does not fit the address space.
func cpuExtent(buf DevAddr, bufOff int64, n uint64) (HostAddr, bool) {
	if bufOff < 0 || uint64(bufOff) > math.MaxUint64-uint64(buf) {
		return 0, false
	}
	at := uint64(buf) + uint64(bufOff)
	return HostAddr(at), n <= math.MaxUint64-at
}

// extentIn is the host address of the n bytes at bufOff from device address
// buf, which points into r; n == 0 at the very end of r is fine.
func (r *registration) extent(buf DevAddr, bufOff int64, n uint64) (HostAddr, Reason) {
	if bufOff < 0 {
		return 0, ReasonBufOffset
	}
	in := uint64(buf - r.addr)
	room := r.lenBytes - in
	if uint64(bufOff) > room || n > room-uint64(bufOff) {
		return 0, ReasonOutside
	}
	return r.host + HostAddr(in) + HostAddr(bufOff), 0
}
