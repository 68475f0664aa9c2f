package core

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A plain file stands where the node would be: it can be mapped, but MAP
// answers ENOTTY.
func TestFailedMapOfADeviceNodeLeavesNoMapping(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "phxfs_dev2")
	if err := os.WriteFile(path, make([]byte, page), 0o600); err != nil {
		t.Fatal(err)
	}
	l := New(Config{Connector: vendor{}, DevDir: dir})
	defer l.Shutdown()
	if err := l.Open(2); err != nil {
		t.Fatal(err)
	}
	_, err := l.Register(2, page, page)
	wantError(t, "Register", err, syscall.ENOTTY, ReasonMap)
	_, err = l.Register(2, page, 1<<62) // mmap itself fails
	wantError(t, "Register", err, syscall.ENOMEM, ReasonMap)
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(maps), path) {
		t.Fatalf("%s is still mapped", path)
	}
	fd := l.devices[2].node.FD()
	if err := l.Close(2); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
		t.Fatalf("descriptor %d after Close: %v, want EBADF", fd, err)
	}
}

func TestLedgerHandsOutZeroedPinsOnce(t *testing.T) {
	var g pinLedger
	defer g.unmapAll()
	seen := map[*Pin]bool{}
	var all []*Pin
	for range 2*pinsPerLedger + 1 {
		p := g.Take()
		if seen[p] || p.State != PinFree || p.Addr != 0 || p.Gate.Closed() {
			t.Fatalf("pin %p: seen %v, %+v", p, seen[p], p)
		}
		seen[p] = true
		p.State, p.Addr = PinMapped, 7
		p.Gate.Close()
		all = append(all, p)
	}
	if len(g.chunks) != 3 {
		t.Fatalf("%d chunks", len(g.chunks))
	}
	for _, p := range all {
		g.Give(p)
	}
	for range all {
		if p := g.Take(); !seen[p] || *(*[unsafe.Sizeof(Pin{})]byte)(unsafe.Pointer(p)) != [unsafe.Sizeof(Pin{})]byte{} {
			t.Fatalf("pin %p is new or not zeroed: %+v", p, p)
		}
	}
}
