package uring

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"libphoenix/internal/need"
)

// BenchmarkRead is the floor: one Enter with n hot reads of 4 KiB.
func BenchmarkRead(b *testing.B) {
	for _, owned := range []bool{false, true} {
		for _, n := range []int{1, 8, 32, 256} {
			b.Run(fmt.Sprintf("owned=%v/n=%d", owned, n), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "hot")
				if err := os.WriteFile(path, make([]byte, n*4096), 0o600); err != nil {
					b.Fatal(err)
				}
				f, err := os.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				mem := make([]byte, n*4096)
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				r, err := Open(nil, Options{Entries: 256, Owned: owned})
				if err != nil {
					need.Missing(b, need.IOUring, "%v", err)
				}
				defer r.Close()
				b.ReportAllocs()
				for b.Loop() {
					for i := range n {
						r.Queue(Read, int32(f.Fd()), uintptr(unsafe.Pointer(&mem[i*4096])), 4096, uint64(i*4096), uint64(i))
					}
					if errno := r.Enter(uint32(n)); errno != 0 {
						b.Fatal(errno)
					}
					for range n {
						if _, res, ok := r.Next(); !ok || res != 4096 {
							b.Fatalf("completion %v, result %d", ok, res)
						}
					}
				}
			})
		}
	}
}
