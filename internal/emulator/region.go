package emulator

import "encoding/binary"

// pinUnit is what addresses and lengths of a registration are multiples of.
const pinUnit = 64 << 10

// state is how far a region has come. It only ever grows.
type state int

const (
	offered  state = iota // mmap asked for it; no page can be touched
	pinned                // MAP succeeded
	released              // UNMAP came
	revoked               // the driver freed the device memory first
	leaked                // nobody can UNMAP it any more
)

// region is the memory of one mmap of a device, and its pin.
type region struct {
	device  int    // set by newRegion, then read-only, as are the next four
	file    fileID // its memfd
	offset  uint64 // of the mmap
	length  uint64 // of the mmap, whole pages
	private bool   // MAP_PRIVATE

	// Under supervisor.mu.
	state  state
	memory int    // its memfd, owned, until MAP succeeds; then -1
	pid    int    // process that called mmap; from MAP on the one that called MAP
	host   uint64 // c_vaddr of MAP
	addr   uint64 // n_vaddr of MAP
	by     int    // process that released it
}

// param is the argument of MAP and UNMAP.
type param struct {
	host, hostLen uint64 // c_vaddr, c_size
	addr, addrLen uint64 // n_vaddr, n_size
}

// paramBytes is the size of the argument in memory.
const paramBytes = 56

func decodeParam(b []byte) param {
	word := func(offset int) uint64 { return binary.LittleEndian.Uint64(b[offset:]) }
	return param{host: word(8), hostLen: word(16), addr: word(24), addrLen: word(32)}
}
