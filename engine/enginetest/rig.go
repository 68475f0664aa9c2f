package enginetest

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

// rig is an engine under test with all that it reports.
type rig struct {
	engine.Engine
	t       *testing.T
	script  *fault.Script // nil in a plain rig
	notices atomic.Int32
	counts  chan int // what OnAsync was told
	closed  bool
	merges  bool // neighbours may be merged
}

// newRig makes an engine; at the end of the test it is closed, if the test has
// not done so, and must have ended all its goroutines.
func newRig(t *testing.T, make_ New, helpers int, script *fault.Script) *rig {
	t.Helper()
	r := &rig{t: t, script: script, counts: make(chan int, 1<<12)}
	cfg := engine.Config{
		Helpers: helpers,
		Notice:  func(string) { r.notices.Add(1) },
		OnAsync: func(n int) {
			select {
			case r.counts <- n:
			default: // a test that does not look
			}
		},
	}
	if script != nil {
		cfg.IO = script
	}
	before := goleak.IgnoreCurrent()
	r.Engine = make_(t, cfg)
	t.Cleanup(func() {
		if !r.closed {
			r.Close()
		}
		goleak.VerifyNone(t, before)
	})
	return r
}

// sync carries out ops as a sync batch.
func (r *rig) sync(k engine.Kind, ops []engine.Op) {
	b := engine.Batch{}
	r.Begin(&b, engine.Sync)
	b.Ops, b.Kind = r.apart(ops), k
	r.Run(&b)
}

// async carries out ops as an async batch.
func (r *rig) async(k engine.Kind, ops []engine.Op) {
	r.Wait(r.submit(k, ops))
}

func (r *rig) submit(k engine.Kind, ops []engine.Op) *engine.Batch {
	r.t.Helper()
	b := &engine.Batch{}
	r.Begin(b, engine.Async)
	b.Ops, b.Kind = r.apart(ops), k
	if err := r.Submit(b); err != nil {
		r.t.Errorf("submit of %d ops: %v", len(ops), err)
	}
	return b
}

// apart keeps ops from being merged, unless the story is about that: most are
// about single transfers, and so are the rules of a script.
func (r *rig) apart(ops []engine.Op) []engine.Op {
	if !r.merges {
		for i := range ops {
			ops[i].Group = uint32(i)
		}
	}
	return ops
}

// both runs a story part for the sync and for the async path.
func (r *rig) both(part func(name string, do func(engine.Kind, []engine.Op))) {
	part("sync", r.sync)
	part("async", r.async)
}

// settle lets all other threads run, so that what must not happen yet would.
// On a busy machine each yield to the kernel costs a turn of everybody.
func settle() {
	for i := range 200 {
		runtime.Gosched()
		if i%20 == 0 {
			_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
}

// memory is page-aligned and outside the Go heap, as a caller's is.
func memory(t *testing.T, lenBytes int) []byte {
	t.Helper()
	m, err := unix.Mmap(-1, 0, lenBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatalf("mmap of %d bytes: %v", lenBytes, err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	return m
}

// op moves m, all of it, at the offset off.
func op(fd int32, m []byte, off int64) engine.Op {
	addr := engine.HostAddr(uintptr(unsafe.Pointer(unsafe.SliceData(m))))
	return engine.Op{FD: fd, Addr: addr, Len: uint64(len(m)), Off: off, Result: -12345}
}

// file is an open file and what is in it.
type file struct {
	fd   int32
	path string
	data []byte
}

func newFile(t *testing.T, dir string, data []byte) file {
	t.Helper()
	f := file{path: filepath.Join(dir, "data"), data: data}
	if err := os.WriteFile(f.path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f.fd = open(t, f.path, unix.O_RDWR)
	return f
}

func open(t *testing.T, path string, flags int) int32 {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatalf("open %s, flags %#x: %v", path, flags, err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return int32(fd)
}

// sparse makes a file of lenBytes zeros that takes no room.
func sparse(t *testing.T, lenBytes int64) file {
	t.Helper()
	f := newFile(t, t.TempDir(), nil)
	if err := os.Truncate(f.path, lenBytes); err != nil {
		t.Fatal(err)
	}
	return f
}

// noise is random data that a seed repeats.
func noise(seed uint64, lenBytes int) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	data := make([]byte, lenBytes)
	_, _ = rand.NewChaCha8(key).Read(data)
	return data
}

// wantOp checks one result, and the memory of a read.
func wantOp(t *testing.T, what string, i int, got engine.Op, want int64, mem, data []byte) {
	t.Helper()
	if got.Result != want {
		t.Errorf("%s, op %d (fd %d, %d bytes at %d): result %d, want %d", what, i, got.FD, got.Len, got.Off, got.Result, want)
		return
	}
	if want > 0 && !bytes.Equal(mem[:want], data[:want]) {
		t.Errorf("%s, op %d (fd %d, %d bytes at %d): wrong data", what, i, got.FD, got.Len, got.Off)
	}
}

// wantAll checks that every op is complete.
func wantAll(t *testing.T, what string, ops []engine.Op) {
	t.Helper()
	for i := range ops {
		if ops[i].Result != int64(ops[i].Len) {
			t.Errorf("%s, op %d: result %d, want %d", what, i, ops[i].Result, ops[i].Len)
		}
	}
}
