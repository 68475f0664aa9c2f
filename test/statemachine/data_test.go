package statemachine

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"libphoenix/connectors"
	"libphoenix/connectors/host"
	"libphoenix/core"
	"libphoenix/engine"
)

const (
	arenaPages = 6
	slot       = 4096 // bytes; requests of a batch have slots of their own: their order is nobody's promise
	fileBytes  = 2*page + 100
)

// hosted is a library beside a copy of all data: memory of this process, whose
// last page is missing, and a file. It is on the host connector, where registered
// memory is memory of this process; or on device nodes, where each registration
// has bytes of its own, zero at first, at its target.
type hosted struct {
	nodes bool
	l     *core.Library
	m     model
	base  core.DevAddr
	mem   []byte // at base, all but the missing page
	fd    int

	memory, file []byte           // what must be there
	areas        map[*area]window // with device nodes
	live         []*handle
}

// window is the bytes of a registration, and what they must be.
type window struct{ is, must []byte }

// bytesAt is mapped memory. checkptr cannot know it.
//
//go:nocheckptr
func bytesAt(target core.HostAddr, n uint64) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&target)), n)
}

// TestSequencesWithData: answers and data, with the kernel's own I/O. Under phx
// emulate, which T_EMULATED tells, it is on device nodes.
func TestSequencesWithData(t *testing.T) {
	_, nodes := os.LookupEnv("T_EMULATED")
	connector := connectors.Connector(host.New())
	if nodes {
		connector = vendor{}
	}
	arena, err := unix.Mmap(-1, 0, (arenaPages+1)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(arena) })
	skip := -int(uintptr(unsafe.Pointer(&arena[0]))) & (page - 1)
	mem := arena[skip : skip+(arenaPages-1)*page]
	if err := unix.Mprotect(arena[skip+(arenaPages-1)*page:][:page&^4095], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(t.TempDir() + "/data")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for _, name := range []string{"io_uring", "sync"} { // the first only where it works
		check(t, 100, func(t *rapid.T) {
			s := &hosted{nodes: nodes, base: core.DevAddr(uintptr(unsafe.Pointer(&mem[0]))), mem: mem, fd: int(f.Fd()),
				memory: make([]byte, len(mem)), file: make([]byte, fileBytes), areas: map[*area]window{}}
			clear(mem)
			for i := range s.file {
				s.file[i] = byte(i*7 + i>>8)
			}
			if _, err := unix.Pwrite(s.fd, s.file, 0); err != nil {
				t.Fatal(err)
			}
			s.l = core.New(core.Config{Connector: connector, NewEngine: func() engine.Engine { return engine.Choose(engine.Config{Helpers: 2}, name) }})
			defer s.l.Shutdown()
			t.Repeat(map[string]func(*rapid.T){
				"":           s.audit,
				"open":       s.open,
				"close":      s.close,
				"register":   s.register,
				"deregister": s.deregister,
				"transfer":   s.transfer,
				"run":        s.run,
				"submit":     s.submit,
				"wait":       s.wait,
			})
			s.wait(t)
			s.audit(t)
			data := make([]byte, fileBytes)
			if n, err := unix.Pread(s.fd, data, 0); n != fileBytes || err != nil || !bytes.Equal(data, s.file) {
				t.Fatalf("the file holds other data (%d bytes, %v)", n, err)
			}
		})
	}
}

// audit compares all memory, while nobody writes to it.
func (s *hosted) audit(t *rapid.T) {
	if len(s.live) > 0 {
		return
	}
	same(t, "memory", s.mem, s.memory)
	for id := range s.m.devices {
		for _, a := range s.m.devices[id].areas {
			same(t, describe("range", id, a.addr, a.n), s.areas[a].is, s.areas[a].must)
		}
	}
}

func same(t *rapid.T, what string, is, must []byte) {
	if bytes.Equal(is, must) {
		return
	}
	for i := range is {
		if is[i] != must[i] {
			t.Fatalf("%s: byte %#x is %#x, want %#x", what, i, is[i], must[i])
		}
	}
}

func (s *hosted) open(t *rapid.T) {
	id := rapid.IntRange(0, 1).Draw(t, "device")
	want(t, "Open", s.l.Open(id), s.m.open(id))
}

func (s *hosted) close(t *rapid.T) {
	id := rapid.IntRange(0, 1).Draw(t, "device")
	last, a := s.m.close(id)
	if last {
		a = s.m.shut(id)
	}
	want(t, "Close", s.l.Close(id), a)
}

func (s *hosted) drawRange(t *rapid.T) (id int, addr core.DevAddr, n uint64) {
	id = rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "device")
	if areas := s.m.devices[id].areas; len(areas) > 0 && rapid.IntRange(0, 3).Draw(t, "known") > 0 {
		a := rapid.SampledFrom(areas).Draw(t, "area")
		return id, a.addr, a.n
	}
	addr = s.base + page*core.DevAddr(rapid.IntRange(0, arenaPages-1).Draw(t, "page"))
	return id, addr, page * uint64(rapid.IntRange(1, 3).Draw(t, "pages"))
}

func (s *hosted) register(t *rapid.T) {
	id, addr, n := s.drawRange(t)
	fresh, old, a := s.m.register(id, addr, n)
	if fresh != nil && !s.nodes && uint64(addr-s.base)+n > uint64(len(s.mem)) {
		fresh.phase, a = gone, answer{syscall.EFAULT, core.ReasonMap}
		s.m.sweep(id)
	}
	target, err := s.l.Register(id, addr, n)
	wantHost(t, describe("Register", id, addr, n), target, err, fresh, old, a)
	switch {
	case a.ok() && !s.nodes && target != core.HostAddr(addr):
		t.Fatalf("the target of %#x is %#x", addr, target)
	case a.ok() && s.nodes && fresh != nil:
		s.areas[fresh] = window{bytesAt(target, n), make([]byte, n)}
	}
}

func (s *hosted) deregister(t *rapid.T) {
	id, addr, n := s.drawRange(t)
	last, a := s.m.deregister(id, addr, n)
	if last != nil {
		a = s.m.finish(id, last)
	}
	want(t, describe("Deregister", id, addr, n), s.l.Deregister(id, addr, n), a)
}

// drawRequest goes to slot i of memory and of the file; i < 0: anywhere. Half
// of the requests go to memory that is in no registration.
func (s *hosted) drawRequest(t *rapid.T, i int) core.Request {
	id, addr, n := s.drawRange(t)
	q := core.Request{FD: int32(s.fd), Device: int32(id), Buf: addr, Result: untouched}
	if rapid.IntRange(0, 2).Draw(t, "plain memory") == 0 {
		q.Device, q.Buf, n = -1, s.base, uint64(len(s.mem))
	}
	at := int64(rapid.Uint64Range(0, n-1).Draw(t, "at"))
	q.Offset = int64(rapid.IntRange(0, fileBytes+10).Draw(t, "offset"))
	length := rapid.SampledFrom([]uint64{0, 1, 511, slot, slot + 1, page, n})
	q.Len = length.Draw(t, "length")
	if i >= 0 {
		in := at % slot
		at, q.Offset = int64(i*slot)+in, int64(i*slot)+q.Offset%slot
		q.Len = min(q.Len, uint64(slot-in), uint64(slot-q.Offset%slot))
		q.Buf, q.BufOffset = s.base, at // the slot, if base is registered
		return q
	}
	through := rapid.Int64Range(0, at).Draw(t, "through the offset")
	q.Buf, q.BufOffset = q.Buf+core.DevAddr(at-through), through
	if q.Device < 0 {
		q.Len = min(q.Len, n-uint64(at))
	}
	return q
}

// move does a transfer to the copies. The file never grows.
func (s *hosted) move(kind engine.Kind, q core.Request) (moved int64, a answer) {
	memory, base := s.memory, s.base
	if q.Device >= 0 {
		in, a := s.m.transfer(int(q.Device), q.Buf, q.BufOffset, q.Len)
		if !a.ok() {
			return 0, a
		}
		if s.nodes {
			memory, base = s.areas[in].must, in.addr
		}
	}
	memory = memory[uint64(q.Buf-base)+uint64(q.BufOffset):][:q.Len]
	file := s.file[min(q.Offset, fileBytes):]
	if kind == engine.Read {
		return int64(copy(memory, file)), answer{}
	}
	return int64(copy(file, memory)), answer{}
}

// fit makes a write end where the file does.
func fit(kind engine.Kind, q core.Request) core.Request {
	if kind == engine.Write {
		q.Len = min(q.Len, uint64(max(0, fileBytes-q.Offset)))
	}
	return q
}

func (s *hosted) transfer(t *rapid.T) {
	s.wait(t) // single transfers are in no order with batches
	kind := drawKind(t)
	q := fit(kind, s.drawRequest(t, -1))
	moved, a := s.move(kind, q)
	got, err := s.l.Transfer(kind, q.FD, q.Device, q.Buf, q.BufOffset, int64(q.Len), q.Offset)
	if want(t, fmt.Sprintf("Transfer(%v, %+v)", kind, q), err, a); got != moved {
		t.Fatalf("Transfer(%v, %+v) moved %d, want %d", kind, q, got, moved)
	}
}

func (s *hosted) drawBatch(t *rapid.T) (kind engine.Kind, reqs []core.Request, results []int64) {
	kind = drawKind(t)
	for i := range rapid.IntRange(0, 12).Draw(t, "requests") {
		q := fit(kind, s.drawRequest(t, i))
		moved, a := s.move(kind, q)
		if !a.ok() {
			moved = -int64(syscall.EFAULT)
		}
		reqs, results = append(reqs, q), append(results, moved)
	}
	return kind, reqs, results
}

func (s *hosted) run(t *rapid.T) {
	kind, reqs, results := s.drawBatch(t)
	failed, err := s.l.Run(kind, reqs)
	want(t, "Run", err, answer{})
	wantResults(t, "Run", failed, reqs, results)
}

func (s *hosted) submit(t *rapid.T) {
	if len(s.live) == engine.MaxAsync {
		return
	}
	kind, reqs, results := s.drawBatch(t)
	h, err := s.l.Submit(kind, reqs)
	want(t, "Submit", err, answer{})
	s.live = append(s.live, &handle{h, reqs, results})
}

// wait waits for all batches.
func (s *hosted) wait(t *rapid.T) {
	for _, c := range s.live {
		failed, err := s.l.Wait(c.h)
		want(t, "Wait", err, answer{})
		wantResults(t, "Wait", failed, c.reqs, c.want)
	}
	s.live = nil
}
