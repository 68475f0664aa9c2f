package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// The benchmarks below run the same load on both engines.

func makers() []struct {
	name string
	make func(testing.TB, engine.Config) engine.Engine
} {
	return []struct {
		name string
		make func(testing.TB, engine.Config) engine.Engine
	}{
		{"sync", func(_ testing.TB, c engine.Config) engine.Engine { return engine.NewSync(c) }},
		{"uring", newUring},
	}
}

func BenchmarkHot4K(b *testing.B) {
	for _, m := range makers() {
		for _, n := range []int{1, 8, 32, 256, 1024} {
			b.Run(fmt.Sprintf("%s/n=%d", m.name, n), func(b *testing.B) {
				fd, mem := hotFile(b, n*block)
				e := m.make(b, engine.Config{})
				defer e.Close()
				runtime.LockOSThread() // as a thread of C is
				defer runtime.UnlockOSThread()
				batch := &engine.Batch{Ops: benchOps(fd, mem, n)}
				b.ReportAllocs()
				for b.Loop() {
					e.Begin(batch, engine.Sync)
					e.Run(batch)
				}
				check(b, batch)
			})
		}
	}
}

func BenchmarkHot4KAsync(b *testing.B) {
	for _, m := range makers() {
		for _, n := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/n=%d", m.name, n), func(b *testing.B) {
				fd, mem := hotFile(b, n*block)
				e := m.make(b, engine.Config{})
				defer e.Close()
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
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
			})
		}
	}
}

// BenchmarkHot4KCallers has many threads calling with 8 ops each.
func BenchmarkHot4KCallers(b *testing.B) {
	const n = 8
	for _, m := range makers() {
		for _, threads := range []int{4, 16} {
			b.Run(fmt.Sprintf("%s/threads=%d", m.name, threads), func(b *testing.B) {
				fd, mem := hotFile(b, n*block)
				e := m.make(b, engine.Config{})
				defer e.Close()
				b.SetParallelism(max(1, threads/runtime.GOMAXPROCS(0)))
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					batch := &engine.Batch{Ops: benchOps(fd, mem, n)}
					for pb.Next() {
						e.Begin(batch, engine.Sync)
						e.Run(batch)
					}
				})
			})
		}
	}
}

// BenchmarkDirect4K reads past the page cache.
func BenchmarkDirect4K(b *testing.B) {
	for _, m := range makers() {
		for _, n := range []int{8, 32, 256} {
			b.Run(fmt.Sprintf("%s/n=%d", m.name, n), func(b *testing.B) {
				plain, _ := noisy(b, n*block)
				direct := openFile(b, fmt.Sprintf("/proc/self/fd/%d", plain), unix.O_RDONLY|unix.O_DIRECT)
				e := m.make(b, engine.Config{})
				defer e.Close()
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				batch := &engine.Batch{Ops: benchOps(direct, pages(b, n*block), n)}
				for b.Loop() {
					e.Begin(batch, engine.Sync)
					e.Run(batch)
				}
				check(b, batch)
			})
		}
	}
}
