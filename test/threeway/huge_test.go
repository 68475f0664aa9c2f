package threeway

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// TestMoreThanTwoGiBArrive reads and writes more in one request than one
// system call moves (MAX_RW_COUNT, 2 GiB less a page), between two small
// requests. The memory is one MiB that is mapped again and again.
func TestMoreThanTwoGiBArrive(t *testing.T) {
	w := newWorld(t)
	const size = 2<<30 + 64<<20
	mem := w.repeated(size, 1<<20)
	one := mem[:1<<20]
	holes, err := unix.MemfdCreate("threeway", unix.MFD_CLOEXEC)
	file := w.own(holes, err)
	w.must(unix.Ftruncate(holes, size+123))
	null := w.open("/dev/null", unix.O_RDWR)
	addr := engine.HostAddr(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	for _, r := range append(newRunners(t), plain()) {
		for i := range one {
			one[i] = 0xaa
		}
		ops := []engine.Op{{FD: file, Addr: addr, Len: 10}, {FD: file, Addr: addr, Len: size - 5, Off: 128}, {FD: file, Addr: addr, Len: 10}}
		r.run(engine.Read, engine.Async, ops)
		if got := ops[1].Result; got != size-5 {
			t.Errorf("%s: read of %d bytes at 128 of a file of %d: %d", r.name, ops[1].Len, size+123, got)
		}
		for i := range one {
			if one[i] != 0 {
				t.Fatalf("%s: byte %d of what the holes gave is %#x", r.name, i, one[i])
			}
		}
		ops[1].FD, ops[1].Len, ops[1].Off = null, size, 1<<40
		r.run(engine.Write, engine.Sync, ops)
		if got := ops[1].Result; got != size {
			t.Errorf("%s: write of %d bytes to /dev/null: %d", r.name, size, got)
		}
	}
}

// repeated is memory of lenBytes in which each piece is the same one.
func (w *world) repeated(lenBytes, piece int) []byte {
	fd, err := unix.MemfdCreate("threeway", unix.MFD_CLOEXEC)
	w.must(err)
	defer func() { _ = unix.Close(fd) }()
	w.must(unix.Ftruncate(fd, int64(piece)))
	mem, err := unix.Mmap(-1, 0, lenBytes, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	w.must(err)
	w.t.Cleanup(func() { _ = unix.Munmap(mem) })
	for at := 0; at < lenBytes; at += piece {
		_, err := unix.MmapPtr(fd, 0, unsafe.Pointer(&mem[at]), uintptr(min(piece, lenBytes-at)),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED|unix.MAP_POPULATE)
		w.must(err)
	}
	return mem
}

// TestAHoleInTheSecondSliceEndsTheResult: the memory of a sliced request has
// an unmapped page. The result is the contiguous prefix, up to the page, though
// other slices may have succeeded.
func TestAHoleInTheSecondSliceEndsTheResult(t *testing.T) {
	w := newWorld(t)
	const size, hole = 20 << 20, 9<<20 + 8192
	a := newArena(t, 32<<20)
	to := w.file(w.tmp, size, unix.O_RDWR)
	data := noise(3, size) // as in the file
	gap := span{a.main.from + hole, a.main.from + hole + 4096}
	a.protect(t, gap, unix.PROT_NONE)
	defer a.protect(t, gap, unix.PROT_READ|unix.PROT_WRITE)
	for _, r := range append(newRunners(t), plain()) {
		for _, order := range []engine.Order{engine.Sync, engine.Async} {
			ops := []engine.Op{{FD: to.fd, Addr: a.addr(a.main.from), Len: size}}
			r.run(engine.Read, order, ops)
			if got := ops[0].Result; got != hole {
				t.Errorf("%s, order %d: read into memory with a hole at %d: %d", r.name, order, hole, got)
			}
			if string(a.mem[a.main.from:gap.from]) != string(data[:hole]) {
				t.Errorf("%s, order %d: wrong data before the hole", r.name, order)
			}
			r.run(engine.Write, order, ops)
			if got := ops[0].Result; got != hole {
				t.Errorf("%s, order %d: write of memory with a hole at %d: %d", r.name, order, hole, got)
			}
			if behind := (span{a.main.from + size, a.main.to}); string(a.mem[behind.from:behind.to]) != string(a.at(a.noise, behind)) {
				t.Errorf("%s, order %d: memory behind the request has changed", r.name, order)
			}
		}
	}
}

// TestAnAbsurdLengthEndsAtTheEndOfTheFile: a length is only a limit, and what
// is refused or stops at once costs nothing more, however many slices the
// length would make.
func TestAnAbsurdLengthEndsAtTheEndOfTheFile(t *testing.T) {
	w := newWorld(t)
	a := newArena(t, 1<<20)
	to := w.file(w.tmp, fileBytes, unix.O_RDONLY)
	for _, r := range append(newRunners(t), plain()) {
		for _, order := range []engine.Order{engine.Sync, engine.Async} {
			ops := []engine.Op{
				{FD: to.fd, Addr: a.addr(a.main.from), Len: 1 << 62, Off: 100},
				{FD: to.fd, Addr: a.addr(a.bad[0].from - 5), Len: 1 << 62, Off: 100},
				{FD: to.fd, Addr: a.addr(a.bad[2].from), Len: 1 << 62, Off: 100},
				{FD: -1, Addr: a.addr(a.main.from), Len: 1 << 62, Off: 100},
			}
			r.run(engine.Read, order, ops)
			for i, want := range []int64{fileBytes - 100, 5, -int64(unix.EFAULT), -int64(unix.EBADF)} {
				if got := ops[i].Result; got != want {
					t.Errorf("%s, order %d: read %d of 1<<62 bytes: %d, want %d", r.name, order, i, got, want)
				}
			}
		}
	}
}
