package phxdev

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestRequestNumbersAreTheKernels(t *testing.T) {
	if CmdMap != 0x40388801 || CmdUnmap != 0x40388802 {
		t.Fatalf("requests = %#x, %#x; want 0x40388801, 0x40388802", CmdMap, CmdUnmap)
	}
}

func TestParametersByteForByte(t *testing.T) {
	const host, dev, n = 0x7f12_3456_0000, 0x7fee_0001_0000, 0x30000
	p := newParams(host, dev, n)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&p)), unsafe.Sizeof(p))
	if len(raw) != 56 {
		t.Fatalf("struct is %d bytes, want 56", len(raw))
	}
	want := map[int]uint64{8: host, 16: n, 24: dev, 32: n} // every other word is zero
	for off := 0; off < 56; off += 8 {
		if got := binary.LittleEndian.Uint64(raw[off:]); got != want[off] {
			t.Errorf("u64 at offset %d = %#x, want %#x", off, got, want[off])
		}
	}
}

func TestSuccessPathOfARegistrationAllocatesNothing(t *testing.T) {
	d, _ := openPlain(t, page)
	got := testing.AllocsPerRun(100, func() {
		host, err := d.Mmap(page)
		if err != nil {
			t.Fatal(err)
		}
		// The ioctl itself: on a plain file it answers ENOTTY, without the
		// error value that Map would make of it.
		p := newParams(host, 0, page)
		if errno := ioctl(d.FD(), CmdMap, &p); errno != unix.ENOTTY {
			t.Fatalf("ioctl = %v, want ENOTTY", errno)
		}
		if err := Munmap(host, page); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Fatalf("%v allocations per registration, want 0", got)
	}
}
