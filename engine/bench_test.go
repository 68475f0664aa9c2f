package engine_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
	"libphoenix/internal/need"
)

// hotFile is a file in the page cache and memory to read it into, which is not
// Go memory: ops name it by an integer.
func hotFile(b testing.TB, lenBytes int) (int32, []byte) {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "hot"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	if _, err := f.Write(make([]byte, lenBytes)); err != nil {
		b.Fatal(err)
	}
	mem, err := unix.Mmap(-1, 0, lenBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = unix.Munmap(mem) })
	return int32(f.Fd()), mem
}

const block = 4096

// benchOps reads n blocks, none of which may be merged with another.
func benchOps(fd int32, mem []byte, n int) []engine.Op {
	ops := make([]engine.Op, n)
	for i := range ops {
		ops[i] = engine.Op{FD: fd, Addr: addrOf(mem) + engine.HostAddr(i*block), Len: block, Off: int64(i * block), Group: uint32(i)}
	}
	return ops
}

func addrOf(mem []byte) engine.HostAddr {
	return engine.HostAddr(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
}

func benchRun(b *testing.B, n int) {
	fd, mem := hotFile(b, n*block)
	e := engine.NewSync(engine.Config{})
	defer e.Close()
	batch := &engine.Batch{Ops: benchOps(fd, mem, n)}
	b.ReportAllocs()
	for b.Loop() {
		e.Begin(batch, engine.Sync)
		e.Run(batch)
	}
	check(b, batch)
}

func check(b testing.TB, batch *engine.Batch) {
	b.Helper()
	for i := range batch.Ops {
		if got := batch.Ops[i].Result; got != block {
			b.Fatalf("op %d: result %d, want %d", i, got, block)
		}
	}
}

// BenchmarkRawPread is the yardstick: n system calls and nothing else.
func BenchmarkRawPread(b *testing.B) {
	fd, mem := hotFile(b, block)
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = syscall.Syscall6(syscall.SYS_PREAD64, uintptr(fd), uintptr(addrOf(mem)), block, 0, 0, 0)
	}
}

func BenchmarkRunN1(b *testing.B)    { benchRun(b, 1) }
func BenchmarkRunN8(b *testing.B)    { benchRun(b, 8) }
func BenchmarkRunN32(b *testing.B)   { benchRun(b, 32) }
func BenchmarkRunN256(b *testing.B)  { benchRun(b, 256) }
func BenchmarkRunN1024(b *testing.B) { benchRun(b, 1024) }

// BenchmarkTicket is what a sync batch costs without any op.
func BenchmarkTicket(b *testing.B) {
	e := engine.NewSync(engine.Config{})
	defer e.Close()
	batch := &engine.Batch{}
	for b.Loop() {
		e.Begin(batch, engine.Sync)
		e.Run(batch)
	}
}

// BenchmarkRunN1Parallel has every processor calling.
func BenchmarkRunN1Parallel(b *testing.B) {
	fd, mem := hotFile(b, block)
	e := engine.NewSync(engine.Config{})
	defer e.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		batch := &engine.Batch{Ops: benchOps(fd, mem, 1)}
		for pb.Next() {
			e.Begin(batch, engine.Sync)
			e.Run(batch)
		}
	})
}

// benchDirect reads past the page cache: what one transfer after the other, or
// two at a time, make of a disk.
func benchDirect(b *testing.B, n, helpers int) {
	_, mem := hotFile(b, n*block)
	path := filepath.Join(b.TempDir(), "cold")
	if err := os.WriteFile(path, make([]byte, n*block), 0o600); err != nil {
		b.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		need.Missing(b, need.ODirect, "open: %v", err)
	}
	defer unix.Close(fd)
	e := engine.NewSync(engine.Config{Helpers: helpers})
	defer e.Close()
	batch := &engine.Batch{Ops: benchOps(int32(fd), mem, n)}
	for b.Loop() {
		e.Begin(batch, engine.Sync)
		e.Run(batch)
	}
	check(b, batch)
}

func BenchmarkDirectN1(b *testing.B)          { benchDirect(b, 1, 1) }
func BenchmarkDirectN8(b *testing.B)          { benchDirect(b, 8, 1) }
func BenchmarkDirectN8Helpers4(b *testing.B)  { benchDirect(b, 8, 4) }
func BenchmarkDirectN32(b *testing.B)         { benchDirect(b, 32, 1) }
func BenchmarkDirectN32Helpers4(b *testing.B) { benchDirect(b, 32, 4) }

func benchAsync(b *testing.B, n int) {
	fd, mem := hotFile(b, n*block)
	e := engine.NewSync(engine.Config{})
	defer e.Close()
	batch := &engine.Batch{Ops: benchOps(fd, mem, n)}
	b.ReportAllocs()
	for b.Loop() {
		e.Begin(batch, engine.Async)
		if err := e.Submit(batch); err != nil {
			b.Fatal(err)
		}
		e.Wait(batch)
	}
	check(b, batch)
}

func BenchmarkAsyncN1(b *testing.B)  { benchAsync(b, 1) }
func BenchmarkAsyncN16(b *testing.B) { benchAsync(b, 16) }
func BenchmarkAsyncN64(b *testing.B) { benchAsync(b, 64) }

// BenchmarkSubmitFull keeps the queue full: 16 small batches in a row.
func BenchmarkSubmitFull(b *testing.B) {
	fd, mem := hotFile(b, block)
	e := engine.NewSync(engine.Config{})
	defer e.Close()
	batches := make([]engine.Batch, engine.MaxAsync)
	for i := range batches {
		batches[i].Ops = benchOps(fd, mem, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range batches {
			e.Begin(&batches[i], engine.Async)
			if err := e.Submit(&batches[i]); err != nil {
				b.Fatal(err)
			}
		}
		for i := range batches {
			e.Wait(&batches[i])
		}
	}
}
