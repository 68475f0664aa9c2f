package engine_test

import (
	"sync"
	"syscall"

	"libphoenix/engine"
)

// aioEmulator is a Linux AIO in user space that gives each request to io, on a
// goroutine of its own. A panic there becomes the result -EIO, and a panic in a
// later Await. It panics itself when it is misused.
type aioEmulator struct {
	io engine.IO

	mu       sync.Mutex
	more     *sync.Cond // events or panics have grown
	contexts map[engine.AIOContext]*aioContext
}

type aioContext struct {
	flying int
	events []engine.AIOEvent
	panics []any
}

func newAIOEmulator(io engine.IO) *aioEmulator {
	k := &aioEmulator{io: io, contexts: map[engine.AIOContext]*aioContext{}}
	k.more = sync.NewCond(&k.mu)
	return k
}

func (k *aioEmulator) Setup(uint32) (engine.AIOContext, syscall.Errno) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := engine.AIOContext(len(k.contexts) + 1)
	k.contexts[c] = &aioContext{}
	return c, 0
}

func (k *aioEmulator) Submit(id engine.AIOContext, requests []*engine.AIORequest) (int, syscall.Errno) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.contexts[id]
	for _, q := range requests {
		c.flying++
		go k.carryOut(c, *q)
	}
	return len(requests), 0
}

func (k *aioEmulator) carryOut(c *aioContext, q engine.AIORequest) {
	n, errno := int64(0), syscall.EIO
	defer func() {
		reason := recover()
		k.mu.Lock()
		defer k.mu.Unlock()
		if reason != nil {
			c.panics = append(c.panics, reason)
		}
		if errno != 0 {
			n = -int64(errno)
		}
		c.flying--
		c.events = append(c.events, engine.AIOEvent{ID: q.ID, Result: n})
		k.more.Broadcast()
	}()
	if engine.Kind(q.Opcode) == engine.Read {
		n, errno = k.io.Pread(q.FD, engine.HostAddr(q.Addr), q.Len, q.Off)
	} else {
		n, errno = k.io.Pwrite(q.FD, engine.HostAddr(q.Addr), q.Len, q.Off)
	}
}

func (k *aioEmulator) Await(id engine.AIOContext, least int, events []engine.AIOEvent) (int, syscall.Errno) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.contexts[id]
	if least > c.flying+len(c.events) {
		panic("aioEmulator: a wait for more than flies")
	}
	for len(c.events) < least && len(c.panics) == 0 {
		k.more.Wait()
	}
	if len(c.panics) > 0 {
		reason := c.panics[0]
		c.panics = c.panics[1:]
		panic(reason)
	}
	return c.takeLocked(events), 0
}

func (k *aioEmulator) Take(id engine.AIOContext, events []engine.AIOEvent) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.contexts[id].takeLocked(events)
}

func (c *aioContext) takeLocked(events []engine.AIOEvent) int {
	n := copy(events, c.events)
	c.events = c.events[n:]
	return n
}

func (k *aioEmulator) Destroy(id engine.AIOContext) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.contexts[id]; c.flying > 0 || len(c.events) > 0 {
		panic("aioEmulator: a context ends with requests in flight")
	}
}

// aioTamper spoils chosen calls of an AIO. Each hook gets the number of the
// call from 0; an errno of it is the answer. A nil hook spoils nothing.
type aioTamper struct {
	engine.AIO
	onSetup, onSubmit, onAwait func(call int) syscall.Errno
	most                       int // requests that one Submit takes; 0: all

	mu                      sync.Mutex
	setups, submits, awaits int // protected by mu
}

func (k *aioTamper) spoiled(count *int, hook func(int) syscall.Errno) syscall.Errno {
	k.mu.Lock()
	defer k.mu.Unlock()
	call := *count
	*count++
	if hook == nil {
		return 0
	}
	return hook(call)
}

// calls is how many of each there were.
func (k *aioTamper) calls() (setups, submits, awaits int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.setups, k.submits, k.awaits
}

func (k *aioTamper) Setup(n uint32) (engine.AIOContext, syscall.Errno) {
	if errno := k.spoiled(&k.setups, k.onSetup); errno != 0 {
		return 0, errno
	}
	return k.AIO.Setup(n)
}

func (k *aioTamper) Submit(c engine.AIOContext, requests []*engine.AIORequest) (int, syscall.Errno) {
	if errno := k.spoiled(&k.submits, k.onSubmit); errno != 0 {
		return 0, errno
	}
	if k.most > 0 {
		requests = requests[:min(len(requests), k.most)]
	}
	return k.AIO.Submit(c, requests)
}

func (k *aioTamper) Await(c engine.AIOContext, least int, events []engine.AIOEvent) (int, syscall.Errno) {
	if errno := k.spoiled(&k.awaits, k.onAwait); errno != 0 {
		return 0, errno
	}
	return k.AIO.Await(c, least, events)
}
