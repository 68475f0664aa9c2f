package emulator

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A mapping of this process is found by the query and in the text alike.
func TestMappingIsFound(t *testing.T) {
	fd, file, err := newMemory(nodeName(3) + ".mmap")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	memory, err := unix.Mmap(fd, 0, 3<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	start := uint64(uintptr(unsafe.Pointer(&memory[0])))
	want := vma{start, start + 3<<16, file}
	pid := os.Getpid()
	if got, errno := mappingAt(pid, start+5); errno != 0 || got != want {
		t.Errorf("query: %+v, %v; want %+v", got, errno, want)
	}
	text, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	if got, errno := scan(text, func(m vma) bool { return m.file == file }); errno != 0 || got != want {
		t.Errorf("text: %+v, %v; want %+v", got, errno, want)
	}
	if !maps(pid, file) {
		t.Error("the file is not found among the mappings")
	}
	if got := deviceOf(uint32(pid), fd); got != 3 {
		t.Errorf("the descriptor is of device %d, want 3", got)
	}
	if err := unix.Munmap(memory); err != nil {
		t.Fatal(err)
	}
	if maps(pid, file) {
		t.Error("the file is found among the mappings after munmap")
	}
	if _, errno := mappingAt(pid, 1); errno != unix.ENOENT {
		t.Errorf("address 1: %v, want ENOENT", errno)
	}
}

func TestMappingsWithStrangeNames(t *testing.T) {
	for line, ok := range map[string]bool{
		"7f00-7f10 rw-s 00000000 00:01 1234                       /memfd:phxfs_dev0.mmap (deleted)": true,
		"7f00-7f10 rw-p 00000000 00:00 0 ":                           true,
		"7f00-7f10 r--p 00001000 fe:00 77 /a path\\012with 9 things": true,
		"nonsense": false,
		"":         false,
	} {
		if m, got := parseMapping(line); got != ok || ok && (m.start != 0x7f00 || m.end != 0x7f10) {
			t.Errorf("%q: %+v, %v; want %v", line, m, got, ok)
		}
	}
}

func TestDescriptorsThatAreNoDevice(t *testing.T) {
	other, _, err := newMemory("phxfs_devices")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	for _, fd := range []int{0, other, -1, 9999} {
		if got := deviceOf(uint32(os.Getpid()), fd); got != -1 {
			t.Errorf("descriptor %d is of device %d, want none", fd, got)
		}
	}
}
