package threeway

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// devices are character devices that every machine has.
func devices() []maker {
	node := func(name string, hazy bool) maker {
		return maker{"/dev/" + name, func(w *world) (*target, *lack) {
			to := bare(w.open("/dev/"+name, unix.O_RDWR))
			to.hazy = hazy
			to.wide = name == "null"
			return to, nil
		}}
	}
	return []maker{node("null", false), node("zero", false), node("full", false), node("urandom", true)}
}

// proc are files of /proc and /sys whose contents stay.
func proc() []maker {
	file := func(path string, size int64) maker {
		return maker{path, func(w *world) (*target, *lack) {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, &lack{"proc", fmt.Errorf("open %s: %w", path, err)}
			}
			to := bare(w.own(fd, nil))
			to.size, to.far = size, false // some take an offset for a signed index
			return to, nil
		}}
	}
	return []maker{
		file("/proc/version", 200),
		file("/proc/filesystems", 500),
		file("/proc/devices", 600),
		file("/proc/self/auxv", 400),
		file("/proc/self/cmdline", 200),
		file("/proc/sys/kernel/osrelease", 20),
		file("/sys/kernel/mm/transparent_hugepage/enabled", 30),
		{"/proc/self/mem", ownMemory},
		{"/proc/self/pagemap", pagemap},
	}
}

// island is mapped memory of lenBytes with nothing behind it.
func (w *world) island(lenBytes int) []byte {
	const behind = 1 << 20
	mem, err := unix.Mmap(-1, 0, lenBytes+behind, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	w.must(err)
	w.t.Cleanup(func() { _ = unix.Munmap(mem) })
	w.must(unix.Mprotect(mem[lenBytes:], unix.PROT_NONE))
	copy(mem, noise(8, lenBytes))
	return mem[:lenBytes]
}

// ownMemory is a file whose offsets are addresses of this process. Its device
// refuses unmapped ones with EIO.
func ownMemory(w *world) (*target, *lack) {
	mem := w.island(40 * 4096)
	to := bare(w.open(fmt.Sprintf("/proc/%d/mem", os.Getpid()), unix.O_RDONLY))
	to.origin, to.size = int64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))), int64(len(mem))
	to.far, to.wide = false, false
	return to, nil
}

// pagemap is a file that refuses offsets and lengths that are no multiples of
// 8, with EINVAL. Pages move, so its data is not compared.
func pagemap(w *world) (*target, *lack) {
	mem := w.island(40 * 4096)
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &lack{"proc", err}
	}
	to := bare(w.own(fd, nil))
	to.origin, to.size = int64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))/4096*8), int64(len(mem)/4096*8)
	to.far, to.wide, to.hazy = false, false, true
	to.direct = true // a slice of a refused length would not be refused
	return to, nil
}
