//go:build phx_inject

package main

// #cgo CFLAGS: -DPHX_INJECT
// #include "bridge.h"
import "C"

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"syscall"
	"unsafe"

	"libphoenix/engine"
)

// inject panics at a place (inject.h) for as many passes as the test asked for.
func inject(place int) {
	left := (*int32)(unsafe.Add(unsafe.Pointer(C.phx_inject_left()), 4*place))
	for {
		n := atomic.LoadInt32(left)
		if n <= 0 {
			return
		}
		if atomic.CompareAndSwapInt32(left, n, n-1) {
			panic(fmt.Sprintf("injected at place %d", place))
		}
	}
}

func injectedIO() engine.IO { return shakyIO{} }

// shakyIO is the kernel, with a place to panic in.
type shakyIO struct{}

func (shakyIO) Pread(fd int32, addr engine.HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	inject(C.PHX_IN_IO)
	r, _, e := syscall.Syscall6(syscall.SYS_PREAD64, uintptr(fd), uintptr(addr), uintptr(n), uintptr(off), 0, 0)
	return int64(r), e
}

func (shakyIO) Pwrite(fd int32, addr engine.HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	inject(C.PHX_IN_IO)
	r, _, e := syscall.Syscall6(syscall.SYS_PWRITE64, uintptr(fd), uintptr(addr), uintptr(n), uintptr(off), 0, 0)
	return int64(r), e
}

// go_memory reads the collector's numbers; runtime/metrics does not stop the
// world for them, as runtime.ReadMemStats does.
//
//export go_memory
func go_memory() (cycles, heap, all C.uint64_t) {
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
	}
	metrics.Read(s)
	return C.uint64_t(s[0].Value.Uint64()), C.uint64_t(s[1].Value.Uint64()), C.uint64_t(s[2].Value.Uint64())
}

// go_allocated counts the objects ever allocated. Only with the world stopped
// is the count exact: else it grows by whole spans.
//
//export go_allocated
func go_allocated() C.uint64_t {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return C.uint64_t(m.Mallocs)
}
