package core

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"go.uber.org/goleak"

	"libphoenix/connectors"
	"libphoenix/engine"
	"libphoenix/engine/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const page = 64 << 10 // bytes; what the fake vendors ask for

// rig is a library on fakes. Its end checks that nothing was left behind.
type rig struct {
	*Library
	t      testing.TB
	nodes  *fakeNodes
	ledger *heapLedger
	script *fault.Script // under the engine
	single *fault.Script // under single transfers
	mapped atomic.Int64  // op arrays
}

type option func(*Config)

func withConnector(c connectors.Connector) option { return func(cfg *Config) { cfg.Connector = c } }
func withLog(log Logger) option                   { return func(cfg *Config) { cfg.Log = log } }
func withOwnLedger() option                       { return func(cfg *Config) { cfg.Ledger = nil } }
func withEngine(wrap func(engine.Engine) engine.Engine) option {
	return func(cfg *Config) {
		inner := cfg.NewEngine
		cfg.NewEngine = func() engine.Engine { return wrap(inner()) }
	}
}

func newRig(t testing.TB, options ...option) *rig {
	t.Helper()
	r := &rig{t: t, ledger: new(heapLedger), script: new(fault.Script), single: new(fault.Script)}
	r.nodes = &fakeNodes{t: t, pinned: map[HostAddr]bool{}}
	cfg := Config{
		Connector: vendor{},
		OpenNode:  r.nodes.open,
		NewEngine: func() engine.Engine { return engine.NewSync(engine.Config{IO: r.script, Helpers: 2}) },
		Ledger:    r.ledger,
	}
	for _, o := range options {
		o(&cfg)
	}
	r.Library = New(cfg)
	r.io = r.single
	r.arrays.mapMem = func(n uintptr) unsafe.Pointer {
		mem := mapMemory(n)
		if mem != nil {
			r.mapped.Add(1)
		}
		return mem
	}
	r.arrays.unmapMem = func(mem unsafe.Pointer, n uintptr) {
		r.mapped.Add(-1)
		unmapMemory(mem, n)
	}
	t.Cleanup(r.end)
	return r
}

// end shuts down and looks for what was left.
func (r *rig) end() {
	r.checkIdle()
	r.Shutdown()
	if got := r.mapped.Load(); got != 0 {
		r.t.Errorf("%d op arrays still mapped after Shutdown", got)
	}
	for i := range r.devices {
		if d := &r.devices[i]; d.ranges.root != nil || d.state != deviceClosed {
			r.t.Errorf("device %d: state %d, ranges left: %v", i, d.state, d.ranges.root != nil)
		}
	}
	r.nodes.mu.Lock()
	defer r.nodes.mu.Unlock()
	if len(r.nodes.pinned) != 0 {
		r.t.Errorf("%d mappings left", len(r.nodes.pinned))
	}
	if o, c := r.nodes.opens.Load(), r.nodes.closes.Load(); o != c {
		r.t.Errorf("nodes opened %d, closed %d", o, c)
	}
	if took, gave := r.ledger.taken.Load(), r.ledger.given.Load(); took != gave {
		r.t.Errorf("pins taken %d, given %d", took, gave)
	}
}

// checkIdle fails if, with no call inside, a gate, batch or op array is held.
func (r *rig) checkIdle() {
	r.t.Helper()
	r.regs.each(func(reg *registration) {
		if reg.pin != nil && reg.gate().Users() != 0 {
			r.t.Errorf("slot %d: %d users inside", reg.slot, reg.gate().Users())
		}
	})
	handles := 0
	r.batches.each(func(b *batch) {
		if b.live.Load() != 0 {
			handles++
		}
	})
	if held := r.batches.held(); held != handles {
		r.t.Errorf("%d batches held by %d handles", held, handles)
	}
	for i := range r.devices {
		if r.devices[i].calls != 0 {
			r.t.Errorf("device %d: %d calls inside", i, r.devices[i].calls)
		}
	}
}

// held counts the entries that are not on the free stack.
func (s *slab[T]) held() int {
	n := 0
	s.each(func(*T) { n++ })
	for i := uint32(s.free.head.Load()); i != 0; i = s.entry(i - 1).next.Load() {
		n--
	}
	return n
}

func (r *rig) open(id int) {
	r.t.Helper()
	if err := r.Open(id); err != nil {
		r.t.Fatalf("Open(%d): %v", id, err)
	}
}

func (r *rig) register(id int, addr DevAddr, n uint64) HostAddr {
	r.t.Helper()
	host, err := r.Register(id, addr, n)
	if err != nil {
		r.t.Fatalf("Register(%d, %#x, %#x): %v", id, addr, n, err)
	}
	return host
}

func (r *rig) deregister(id int, addr DevAddr, n uint64) {
	r.t.Helper()
	if err := r.Deregister(id, addr, n); err != nil {
		r.t.Fatalf("Deregister(%d, %#x, %#x): %v", id, addr, n, err)
	}
}

// find is the registration that starts at addr, in any state.
func (r *rig) find(id int, addr DevAddr) *registration {
	d := &r.devices[id]
	d.mu.RLock()
	defer d.mu.RUnlock()
	if reg := d.ranges.floor(addr); reg != nil && reg.addr == addr {
		return reg
	}
	return nil
}

// calls is how many regmem and deregmem calls are inside a device.
func (r *rig) calls(id int) int {
	d := &r.devices[id]
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.calls
}

func (r *rig) state(id int) deviceState {
	d := &r.devices[id]
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.state
}

// until returns when a state that another goroutine is sure to bring about is
// there.
func until(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}

// async runs f on a goroutine; the channel gives its result.
func async[T any](f func() T) chan T {
	c := make(chan T, 1)
	go func() { c <- f() }()
	return c
}

// wantError fails unless err is a core error with both parts.
func wantError(t testing.TB, what string, err error, errno syscall.Errno, why Reason) {
	t.Helper()
	e := new(Error)
	if !errors.As(err, &e) || e.Errno != errno || e.Why != why {
		t.Fatalf("%s: got %v (%#v), want %v, %q", what, err, err, errno, why)
	}
	if !errors.Is(err, errno) || e.Error() == "" {
		t.Fatalf("%s: %v does not unwrap to %v", what, err, errno)
	}
}

// newFile is a file of n bytes, byte i being pattern(i), open for both.
func newFile(t testing.TB, n int) *os.File {
	t.Helper()
	data := make([]byte, n)
	for i := range data {
		data[i] = pattern(i)
	}
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func pattern(i int) byte { return byte(i*7 + i>>8) }

// fd is the number of f; f stays open until the test ends.
func fd(f *os.File) int32 { return int32(f.Fd()) }

// newBuffer is n bytes of process memory that the Go heap does not know.
func newBuffer(t testing.TB, n int) ([]byte, DevAddr) {
	t.Helper()
	mem := mapMemory(uintptr(n))
	if mem == nil {
		t.Fatal("out of memory")
	}
	t.Cleanup(func() { unmapMemory(mem, uintptr(n)) })
	return unsafe.Slice((*byte)(mem), n), DevAddr(mem)
}

// bytesAt shows memory of a fake mapping. checkptr cannot know it.
//
//go:nocheckptr
func bytesAt(host HostAddr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&host)), n)
}

// wantPattern fails unless b holds the file's bytes from off on.
func wantPattern(t testing.TB, b []byte, off int) {
	t.Helper()
	for i := range b {
		if b[i] != pattern(off+i) {
			t.Fatalf("byte %d is %#x, want %#x (file offset %d)", i, b[i], pattern(off+i), off+i)
		}
	}
}
