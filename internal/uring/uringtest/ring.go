package uringtest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"libphoenix/internal/uring"
)

// ring is the kernel's side of one ring.
type ring struct {
	kernel  *Emulator
	flags   uint32
	queues  []byte // both, as with IORING_FEAT_SINGLE_MMAP
	sqes    []byte
	entries uint32 // of the submission queue; the other has twice as many

	mu   sync.Mutex
	more *sync.Cond // a completion was posted

	// Protected by mu.
	running int // requests taken and not completed
	panics  []any
}

// Layout of queues: eight words, then the completions, then the array.
const (
	sqHeadAt = 4 * iota
	sqTailAt
	cqHeadAt
	cqTailAt
	sqMaskAt
	cqMaskAt
	cqesAt = 64
)

// rawSQE is struct io_uring_sqe (linux/io_uring.h).
type rawSQE struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off, addr     uint64
	len, opFlags  uint32
	id            uint64
	_             [3]uint64
}

func newRing(k *Emulator, entries uint32, p *uring.Params) *ring {
	n := uint32(1)
	for n < entries {
		n *= 2
	}
	cqes := 2 * n
	r := &ring{
		kernel: k, flags: p.Flags, entries: n,
		queues: words(int(cqesAt+16*cqes+4*n) / 8), sqes: words(int(8 * n)),
	}
	r.more = sync.NewCond(&r.mu)
	*r.word(sqMaskAt), *r.word(cqMaskAt) = n-1, cqes-1
	p.SQEntries, p.CQEntries, p.Features = n, cqes, k.Features
	p.SQOffset.Head, p.SQOffset.Tail, p.SQOffset.RingMask = sqHeadAt, sqTailAt, sqMaskAt
	p.CQOffset.Head, p.CQOffset.Tail, p.CQOffset.RingMask = cqHeadAt, cqTailAt, cqMaskAt
	p.CQOffset.Cqes = cqesAt
	if p.Flags&uring.SetupNoSQArray == 0 {
		p.SQOffset.Array = cqesAt + 16*cqes
	}
	return r
}

// words is memory aligned to 8 bytes.
func words(n int) []byte {
	w := make([]uint64, n)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 8*n)
}

func (r *ring) word(at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.queues[at])) }

func (r *ring) part(off int64) []byte {
	if off == uring.OffSQEs {
		return r.sqes
	}
	return r.queues
}

func (r *ring) holds(m []byte) bool {
	return unsafe.SliceData(m) == unsafe.SliceData(r.queues) || unsafe.SliceData(m) == unsafe.SliceData(r.sqes)
}

func (r *ring) mustBeIdle(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running > 0 {
		panic(fmt.Sprintf("uringtest: ring %s with %d requests in flight", what, r.running))
	}
}

// enter takes up to submit requests and waits as io_uring_enter(2) does.
func (r *ring) enter(submit, minComplete, flags uint32) int {
	n := uint32(0)
	head := *r.word(sqHeadAt) // ours
	for ; n < submit && head != atomic.LoadUint32(r.word(sqTailAt)); n++ {
		r.start(head & (r.entries - 1))
		head++
	}
	atomic.StoreUint32(r.word(sqHeadAt), head)
	r.mu.Lock()
	defer r.mu.Unlock()
	if flags&uring.EnterGetEvents != 0 && n == submit {
		for r.ready() < minComplete && len(r.panics) == 0 {
			r.more.Wait()
		}
	}
	if len(r.panics) > 0 {
		reason := r.panics[0]
		r.panics = r.panics[1:]
		panic(reason)
	}
	return int(n)
}

func (r *ring) ready() uint32 {
	return *r.word(cqTailAt) - atomic.LoadUint32(r.word(cqHeadAt))
}

// start takes the request at a place of the submission queue.
func (r *ring) start(place uint32) {
	if r.flags&uring.SetupNoSQArray == 0 {
		place = *r.word(cqesAt + 32*r.entries + 4*place)
	}
	e := *(*rawSQE)(unsafe.Pointer(&r.sqes[64*place]))
	q := Request{uring.Opcode(e.opcode), e.fd, uintptr(e.addr), e.len, int64(e.off), e.id}
	switch q.Opcode {
	case uring.Nop:
		r.post(q.ID, 0)
		return
	case uring.AsyncCancel:
		r.post(q.ID, -int32(syscall.EALREADY))
		return
	case uring.Readv, uring.Writev:
		if e.len != 1 {
			r.post(q.ID, -int32(syscall.EINVAL))
			return
		}
		v := *(*[2]uintptr)(add(e.addr))
		q.Addr, q.Len = v[0], uint32(v[1])
	}
	r.mu.Lock()
	r.running++
	r.mu.Unlock()
	go r.carryOut(q)
}

// add turns an address of the caller's into a pointer, as the kernel may.
func add(addr uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

func (r *ring) carryOut(q Request) {
	res := -int32(syscall.EIO)
	defer func() {
		reason := recover()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running--
		if reason != nil {
			r.panics = append(r.panics, reason)
		}
		r.postLocked(q.ID, res)
	}()
	res = r.kernel.Do(q)
}

// post reports the completion of a request that never ran.
func (r *ring) post(id uint64, res int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.postLocked(id, res)
}

func (r *ring) postLocked(id uint64, res int32) {
	tail := *r.word(cqTailAt) // ours
	if r.ready() == 2*r.entries {
		panic("uringtest: the completion queue overflows")
	}
	e := (*struct {
		id    uint64
		res   int32
		flags uint32
	})(unsafe.Pointer(&r.queues[cqesAt+16*(tail&(2*r.entries-1))]))
	e.id, e.res, e.flags = id, res, 0
	atomic.StoreUint32(r.word(cqTailAt), tail+1)
	r.more.Broadcast()
}
