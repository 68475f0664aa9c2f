package engine

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AIO is the system calls of Linux AIO (linux/aio_abi.h); tests put others
// there. Errno 0 is success.
type AIO interface {
	// Setup makes a context for that many transfers.
	Setup(transfers uint32) (AIOContext, syscall.Errno)
	// Submit hands over the first n of the requests. Fewer than all without an
	// errno: the next one was refused, and is the first of the next call, which
	// then says why.
	Submit(c AIOContext, requests []*AIORequest) (n int, errno syscall.Errno)
	// Await waits until least events can be taken and takes as many as fit.
	Await(c AIOContext, least int, events []AIOEvent) (n int, errno syscall.Errno)
	// Take takes the events that are there. It makes no system call, so it
	// works where Await is refused.
	Take(c AIOContext, events []AIOEvent) int
	// Destroy ends a context with nothing in flight.
	Destroy(c AIOContext)
}

// AIOContext is an aio_context_t: the address of the ring in which the kernel
// leaves events. It means nothing in a forked child.
type AIOContext uintptr

// AIORequest is struct iocb. The kernel copies it in Submit.
type AIORequest struct {
	ID     uint64
	_      uint32 // aio_key, written by Submit
	_      uint32 // aio_rw_flags
	Opcode uint16 // 0: pread, 1: pwrite, as Kind
	_      int16
	FD     int32
	Addr   uint64
	Len    uint64
	Off    int64
	_      uint64
	_, _   uint32
}

// AIOEvent is struct io_event.
type AIOEvent struct {
	ID     uint64
	_      uint64
	Result int64 // bytes or -errno
	_      int64
}

// aioRing is struct aio_ring (fs/aio.c), the head of the mapping at a context's
// address. User space may take events from it: libaio does.
type aioRing struct {
	_                 uint32
	entries           uint32
	head, tail        uint32
	magic             uint32
	_, incompat, size uint32
}

const aioMagic = 0xa10a10a1

// linuxAIO is the real AIO.
type linuxAIO struct{}

// Setup implements AIO. A ring of another layout is refused: Take could not
// read it, and nothing else works once Await is denied.
func (k linuxAIO) Setup(transfers uint32) (AIOContext, syscall.Errno) {
	var c AIOContext
	_, _, errno := unix.Syscall(unix.SYS_IO_SETUP, uintptr(transfers), uintptr(unsafe.Pointer(&c)), 0)
	if errno != 0 {
		return 0, errno
	}
	if r := c.ring(); r.magic != aioMagic || r.incompat != 0 || uintptr(r.size) != unsafe.Sizeof(*r) {
		k.Destroy(c)
		return 0, syscall.ENOSYS
	}
	return c, 0
}

// Submit implements AIO.
func (linuxAIO) Submit(c AIOContext, requests []*AIORequest) (int, syscall.Errno) {
	n, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, uintptr(c), uintptr(len(requests)), uintptr(unsafe.Pointer(unsafe.SliceData(requests))))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// Await implements AIO.
func (linuxAIO) Await(c AIOContext, least int, events []AIOEvent) (int, syscall.Errno) {
	n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, uintptr(c), uintptr(least), uintptr(len(events)), uintptr(unsafe.Pointer(unsafe.SliceData(events))), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// Take implements AIO. The kernel writes an event before it moves the tail.
func (linuxAIO) Take(c AIOContext, events []AIOEvent) (n int) {
	r := c.ring()
	head := atomic.LoadUint32(&r.head)
	for ; n < len(events) && head != atomic.LoadUint32(&r.tail); n++ {
		events[n] = *r.event(head)
		if head++; head == r.entries {
			head = 0
		}
	}
	atomic.StoreUint32(&r.head, head)
	return n
}

// Destroy implements AIO.
func (linuxAIO) Destroy(c AIOContext) { _, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, uintptr(c), 0, 0) }

func (c AIOContext) ring() *aioRing {
	return *(**aioRing)(unsafe.Pointer(&c)) // memory of the kernel's, not Go's
}

func (r *aioRing) event(i uint32) *AIOEvent {
	return (*AIOEvent)(unsafe.Add(unsafe.Pointer(r), unsafe.Sizeof(*r)+uintptr(i)*unsafe.Sizeof(AIOEvent{})))
}

// The kernel's sizes.
var (
	_ [0]struct{} = [unsafe.Sizeof(AIORequest{}) - 64]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(AIOEvent{}) - 32]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(aioRing{}) - 32]struct{}{}
)
