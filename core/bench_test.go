package core

import (
	"fmt"
	"testing"

	"libphoenix/engine"
)

// crowd is a library on embedded memory with n live registrations.
func crowd(b *testing.B, n int) *Library {
	l := New(Config{
		Connector: embeddedVendor{},
		NewEngine: func() engine.Engine { return engine.NewSync(engine.Config{Helpers: 1}) },
	})
	b.Cleanup(l.Shutdown)
	if err := l.Open(0); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		if _, err := l.Register(0, crowded(i), page); err != nil {
			b.Fatal(err)
		}
	}
	return l
}

func crowded(i int) DevAddr { return DevAddr(2+2*i) * page }

var crowds = []int{1, 1000, 10_000}

// BenchmarkResolve is the cost of one request of a batch of 64, each in another
// registration (the worst case) or all in one.
func BenchmarkResolve(b *testing.B) {
	for _, n := range crowds {
		for _, spread := range []bool{false, true} {
			b.Run(fmt.Sprintf("live=%d/spread=%v", n, spread), func(b *testing.B) {
				l := crowd(b, n)
				reqs := make([]Request, 64)
				for i := range reqs {
					at := n / 2
					if spread {
						at = i * 7919 % n
					}
					reqs[i] = Request{Buf: crowded(at), Len: 4096}
				}
				batch := l.takeBatch("bench")
				defer l.giveBatch(batch)
				l.arrays.take(batch, len(reqs))
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					l.resolve(reqs, batch)
					l.leaveGates(batch.Ops)
					batch.Ops = batch.Ops[:0]
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(reqs)), "ns/request")
			})
		}
	}
}

func BenchmarkRegisterPair(b *testing.B) {
	for _, n := range crowds {
		b.Run(fmt.Sprintf("live=%d", n), func(b *testing.B) {
			l := crowd(b, n)
			addr := crowded(n/2) - page // between two of them
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if _, err := l.Register(0, addr, page); err != nil {
					b.Fatal(err)
				}
				if err := l.Deregister(0, addr, page); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCalls(b *testing.B) {
	l := crowd(b, 1000)
	_, addr := newBuffer(b, 2*page)
	addr = (addr + page - 1) &^ (page - 1)
	if _, err := l.Register(0, addr, page); err != nil {
		b.Fatal(err)
	}
	f := newFile(b, page)
	fd := fd(f)
	b.Run("pread", func(b *testing.B) {
		for range b.N {
			_, _ = engine.Kernel().Pread(fd, HostAddr(addr), 4096, 0)
		}
	})
	b.Run("Transfer/cpu", func(b *testing.B) {
		for range b.N {
			_, _ = l.Transfer(engine.Read, fd, -1, addr, 0, 4096, 0)
		}
	})
	b.Run("Transfer/registered", func(b *testing.B) {
		for range b.N {
			_, _ = l.Transfer(engine.Read, fd, 0, addr, 0, 4096, 0)
		}
	})
	for _, n := range []int{1, 8, 32} {
		reqs := make([]Request, n)
		for i := range reqs {
			reqs[i] = Request{FD: fd, Buf: addr, Len: 4096}
		}
		b.Run(fmt.Sprintf("Run/n=%d", n), func(b *testing.B) {
			for range b.N {
				_, _ = l.Run(engine.Read, reqs)
			}
		})
	}
	none := make([]Request, 8)
	for i := range none {
		none[i] = Request{FD: -1, Buf: addr} // 0 bytes: what core and engine add to the I/O
	}
	b.Run("Run/n=8/empty", func(b *testing.B) {
		for range b.N {
			_, _ = l.Run(engine.Read, none)
		}
	})
}
