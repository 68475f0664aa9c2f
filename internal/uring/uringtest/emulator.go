package uringtest

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"libphoenix/internal/uring"
)

// Request is one submission, a vector of one already resolved.
type Request struct {
	Opcode uring.Opcode
	FD     int32
	Addr   uintptr
	Len    uint32
	Off    int64
	ID     uint64
}

// Emulator is an io_uring in user space. Set the fields before its first use.
type Emulator struct {
	// Do carries out a request and returns its result, bytes or -errno. It
	// runs on a goroutine of the request's and may block. A panic in it
	// becomes the result -EIO, and a panic in a later Enter on that ring.
	Do func(Request) int32

	Lacks       uint32        // setup flags that give EINVAL
	Features    uint32        // reported by setup
	MostEntries uint32        // more give ENOMEM; 0: no limit
	Refusal     syscall.Errno // of every setup
	NoRegister  bool          // registering gives EINVAL

	mu    sync.Mutex
	last  int           // fd; protected by mu
	rings map[int]*ring // by fd and by registered index; protected by mu
}

// New returns an Emulator of a recent kernel.
func New(do func(Request) int32) *Emulator {
	return &Emulator{Do: do, Features: uring.FeatSingleMmap | uring.FeatRegRegRing}
}

// firstFD is beyond the fds of a test process, so that an emulated fd that
// strays into a real system call gives EBADF.
const firstFD = 1 << 24

// Setup implements uring.Kernel.
func (k *Emulator) Setup(entries uint32, p *uring.Params) (int, syscall.Errno) {
	known := uint32(uring.SetupNoSQArray | uring.SetupSingleIssuer | uring.SetupCoopTaskrun | uring.SetupSubmitAll)
	switch {
	case k.Refusal != 0:
		return -1, k.Refusal
	case p.Flags&^known != 0 || p.Flags&k.Lacks != 0:
		return -1, syscall.EINVAL
	case k.MostEntries != 0 && entries > k.MostEntries:
		return -1, syscall.ENOMEM
	}
	r := newRing(k, entries, p)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rings == nil {
		k.last, k.rings = firstFD, map[int]*ring{}
	}
	k.last++
	k.rings[k.last] = r
	return k.last, 0
}

func (k *Emulator) find(fd int) *ring {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rings[fd]
}

// Rings is how many names of rings are in use: fds and registered indices.
func (k *Emulator) Rings() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.rings)
}

// FDs is how many rings are known by an fd.
func (k *Emulator) FDs() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for fd := range k.rings {
		if fd >= 0 {
			n++
		}
	}
	return n
}

// Enter implements uring.Kernel.
func (k *Emulator) Enter(fd int, submit, minComplete, flags uint32) (int, syscall.Errno) {
	if flags&uring.EnterRegisteredRing != 0 {
		fd = -1 - fd
	}
	r := k.find(fd)
	if r == nil {
		return -1, syscall.EBADF
	}
	return r.enter(submit, minComplete, flags), 0
}

// Register implements uring.Kernel: rings and nothing else.
func (k *Emulator) Register(fd int, op uint32, arg unsafe.Pointer, n uint32) (int, syscall.Errno) {
	if k.NoRegister || n != 1 {
		return -1, syscall.EINVAL
	}
	if op&uring.UseRegisteredRing != 0 {
		fd = -1 - fd
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.rings[fd]
	u := (*uring.RingUpdate)(arg)
	switch {
	case r == nil:
		return -1, syscall.EBADF
	case op == uring.RegisterRingFDs && u.Offset == ^uint32(0) && int(u.Data) == fd:
		k.last++
		u.Offset = uint32(k.last)
		k.rings[-1-k.last] = r
		return 1, 0
	case op&^uring.UseRegisteredRing == uring.UnregisterRingFDs && k.rings[-1-int(u.Offset)] == r:
		delete(k.rings, -1-int(u.Offset))
		return 1, 0
	}
	return -1, syscall.EINVAL
}

// Map implements uring.Kernel.
func (k *Emulator) Map(fd int, off int64, lenBytes int) ([]byte, syscall.Errno) {
	r := k.find(fd)
	if r == nil {
		return nil, syscall.EBADF
	}
	m := r.part(off)
	if lenBytes > len(m) {
		return nil, syscall.EINVAL
	}
	return m[:lenBytes:lenBytes], 0
}

// Unmap implements uring.Kernel.
func (k *Emulator) Unmap(m []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.rings {
		if r.holds(m) {
			r.mustBeIdle("unmapped")
		}
	}
}

// Close implements uring.Kernel.
func (k *Emulator) Close(fd int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.rings[fd]
	if r == nil {
		panic(fmt.Sprintf("uringtest: close of %d, which is no open ring", fd))
	}
	r.mustBeIdle("closed")
	delete(k.rings, fd)
}
