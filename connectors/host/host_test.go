package host

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"libphoenix/connectors"
	"libphoenix/connectors/connectorstest"

	"golang.org/x/sys/unix"
)

// region maps n pages of 4096 bytes outside the Go heap.
func region(t *testing.T, n int) (mem []byte, addr uint64) {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n<<12, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return mem, uint64(uintptr(unsafe.Pointer(&mem[0])))
}

func wantErrno(t *testing.T, err error, want syscall.Errno, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v, want %v with %q in its text", err, want, text)
	}
}

func TestConnector(t *testing.T) {
	connectorstest.Run(t, connectorstest.Vendor{
		New:  func(string, string) connectors.Connector { return New() },
		Name: "HOST", PageSize: 65536, Staging: &connectorstest.Staging{},
	})
}

func TestCheckRangeAcrossAdjacentMappings(t *testing.T) {
	// Pages of one reservation that the kernel cannot merge: every other one
	// is also executable.
	mem, addr := region(t, 400)
	for i := 0; i < 400; i += 2 {
		if err := unix.Mprotect(mem[i<<12:(i+1)<<12], unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC); err != nil {
			t.Fatal(err)
		}
	}
	// Small buffers make lines straddle the reads of the real file as well.
	for _, size := range []int{1, 13, 100, mapsBuf} {
		if err := checkRange(addr, 400<<12, make([]byte, size)); err != nil {
			t.Errorf("buffer of %d bytes: %v", size, err)
		}
	}
	if err := unix.Mprotect(mem[399<<12:], unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 13, 100, mapsBuf} {
		wantErrno(t, checkRange(addr, 400<<12, make([]byte, size)), syscall.EFAULT, "not writable")
	}
	if err := checkRange(addr, 399<<12, make([]byte, mapsBuf)); err != nil {
		t.Errorf("without the read-only page: %v", err)
	}
}

func TestCheckRangeRefusesAHole(t *testing.T) {
	mem, addr := region(t, 16)
	// A reserved page stands for the hole: a real one could be taken by
	// another thread's mapping at any moment.
	if err := unix.Mprotect(mem[8<<12:9<<12], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	c := New()
	wantErrno(t, c.CheckRange(connectors.DevAddr(addr), 16<<12), syscall.EFAULT, "not writable")
	wantErrno(t, c.CheckRange(0x10, 1), syscall.EFAULT, "nothing mapped at 0x10")
	wantErrno(t, c.CheckRange(1<<62, 1<<20), syscall.EFAULT, "nothing mapped")
	if err := c.CheckRange(connectors.DevAddr(addr), 8<<12); err != nil {
		t.Errorf("below the hole: %v", err)
	}
	if err := c.CheckRange(connectors.DevAddr(addr+9<<12), 0); err != nil {
		t.Errorf("empty range: %v", err)
	}
}

func TestCheckRangeRefusesRangesThatWrap(t *testing.T) {
	wantErrno(t, New().CheckRange(^connectors.DevAddr(0)-4095, 8192), syscall.EFAULT, "wraps")
}

func TestCheckRangeAllocatesNothing(t *testing.T) {
	_, addr := region(t, 16)
	c := connectors.Embedded(New())
	got := testing.AllocsPerRun(200, func() {
		if err := c.CheckRange(connectors.DevAddr(addr), 16<<12); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Fatalf("%v allocations per check, want 0", got)
	}
}

func TestCopiesBothWays(t *testing.T) {
	a, addrA := region(t, 4)
	b, addrB := region(t, 4)
	for i := range a {
		a[i] = byte(i * 7)
	}
	c := New()
	if err := c.CopyToDevice(0, connectors.DevAddr(addrB), uintptr(addrA), uint64(len(a))); err != nil || !bytes.Equal(a, b) {
		t.Fatalf("CopyToDevice: %v, equal %v", err, bytes.Equal(a, b))
	}
	clear(a)
	if err := c.CopyToHost(7, uintptr(addrA)+1, connectors.DevAddr(addrB), 100); err != nil {
		t.Fatal(err)
	}
	if a[0] != 0 || a[101] != 0 || !bytes.Equal(a[1:101], b[:100]) {
		t.Fatalf("CopyToHost wrote % x", a[:104])
	}
	// Overlap moves as if through a third place.
	want := append([]byte(nil), b[:4096]...)
	if err := c.CopyToDevice(0, connectors.DevAddr(addrB)+64, uintptr(addrB), 4096); err != nil || !bytes.Equal(b[64:64+4096], want) {
		t.Fatalf("overlapping copy: %v", err)
	}
}

func TestCopyChecksItsArguments(t *testing.T) {
	_, addr := region(t, 1)
	c := New()
	wantErrno(t, c.CopyToDevice(-1, 0, 0, 0), syscall.EINVAL, "device -1")
	wantErrno(t, c.CopyToHost(8, 0, 0, 0), syscall.ENODEV, "device 8")
	wantErrno(t, c.CopyToDevice(0, 0, uintptr(addr), 1), syscall.EINVAL, "copy")
	wantErrno(t, c.CopyToDevice(0, connectors.DevAddr(addr), 0, 1), syscall.EINVAL, "copy")
	wantErrno(t, c.CopyToHost(0, uintptr(addr), connectors.DevAddr(addr), 1<<63), syscall.EINVAL, "copy")
	wantErrno(t, c.CopyToHost(0, ^uintptr(0), connectors.DevAddr(addr), 2), syscall.EINVAL, "copy")
	if err := c.CopyToHost(0, 0, 0, 0); err != nil {
		t.Errorf("copy of nothing: %v", err)
	}
}

func TestHostFunctionRunsOnceBeforeTheCallReturns(t *testing.T) {
	ran := 0
	if err := New().LaunchHostFunc(0, 0xdead, func() { ran++ }); err != nil || ran != 1 {
		t.Fatalf("LaunchHostFunc: %v, ran %d times, want once", err, ran)
	}
	wantErrno(t, New().LaunchHostFunc(0, 0, nil), syscall.EINVAL, "nil function")
	wantErrno(t, New().LaunchHostFunc(9, 0, func() { t.Error("ran on a device that does not exist") }), syscall.ENODEV, "device 9")
}
