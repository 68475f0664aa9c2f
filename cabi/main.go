package main

// #cgo CFLAGS: -std=gnu11 -O2 -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter -Werror=implicit-function-declaration -Werror=int-conversion
// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"strings"
	"sync/atomic"
	"unsafe"

	"libphoenix/connectors"
	"libphoenix/connectors/registry"
	"libphoenix/core"
	"libphoenix/engine"
	"libphoenix/internal/stack"
)

// process is the one mutable package variable of the library. Written by:
// go_start, once, before any other export can be called.
var process struct {
	lib        *core.Library
	log        *logger
	generation uint64 // of forks; the upper 8 bits of this process's handles
}

func main() {} // required by -buildmode=c-shared, never runs

// go_start builds the library object from the environment that the shim has
// read. It is the first export called after Go's entry has run.
//
//export go_start
func go_start(s *C.struct_phx_state, e *C.struct_phx_env) (eno C.int) {
	defer containStart(&eno)
	inject(C.PHX_IN_START)
	log := newLogger(s, int(e.log_level))
	conn := chooseConnector(log, C.GoString(&e.vendor[0]), C.GoString(&e.sysfs_root[0]))
	if l, ok := conn.(connectors.Liveness); ok {
		C.phx_set_identity(s, C.uintptr_t(l.IdentityFunc()))
	}
	process.log = log
	process.generation = uint64(C.phx_generation(s)) & 0xff
	pins := newLedger(s)
	process.lib = core.New(core.Config{
		Connector: conn,
		DevDir:    C.GoString(&e.dev_dir[0]),
		NewEngine: func() engine.Engine {
			return newEngine(s, log, C.GoString(&e.io_engine[0]), int(e.workers), int(e.queue_depth))
		},
		IO:           injectedIO(),
		Ledger:       pins,
		Log:          log,
		CollectorOff: true, // start.c
		Room:         func(threads int) bool { return C.phx_room(s, C.int(threads)) == 0 },

		Mode:         core.Mode(e.mode),
		StagingBytes: uint64(e.staging_mb) << 20,
	})
	process.lib.Adopt(pins.heritage())
	stack.SpareThreads(C.PHX_SPARE_THREADS)
	stack.Reserve() // this thread's, as go_settle does
	return 0
}

// go_settle is the first call of each other thread: it gets its part of Go,
// and a stack on which handlers of the host have room.
//
//export go_settle
func go_settle() {
	defer containSettle()
	inject(C.PHX_IN_SETTLE)
	stack.Reserve()
}

// chooseConnector never fails: an unknown PHXFS_VENDOR is reported and the
// vendor of the build is used.
func chooseConnector(log *logger, name, sysfsRoot string) connectors.Connector {
	opts := registry.Options{SysfsRoot: sysfsRoot, LookupEnv: lookupEnv}
	c, err := registry.Choose(name, opts)
	if err == nil {
		return c
	}
	log.note(core.LevelError, "environment", "PHXFS_VENDOR is ignored: "+err.Error())
	if c, err = registry.Choose("", opts); err != nil {
		panic(err) // the build's own default; the Makefile checks its name
	}
	return c
}

// lookupEnv reads a variable of the process, which Go's own copy does not show.
func lookupEnv(name string) (string, bool) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	value := C.phx_env_lookup(text)
	if value == nil {
		return "", false
	}
	return C.GoString(value), true
}

func newEngine(s *C.struct_phx_state, log *logger, name string, workers, depth int) engine.Engine {
	inFlight := (*int32)(unsafe.Pointer(C.phx_async_word(s)))
	notice := func(reason string) { log.note(core.LevelWarn, "engine", reason) }
	name = strings.ToLower(name)
	if name != "" && name != "sync" && name != "io_uring" {
		log.note(core.LevelError, "environment", "PHXFS_IO_ENGINE is neither io_uring nor sync and is ignored")
	}
	inject(C.PHX_IN_ENGINE)
	return engine.Choose(engine.Config{
		IO:      injectedIO(),
		RingFDs: (*engine.RingFDs)(unsafe.Pointer(C.phx_ring_fds(s))),
		Helpers: workers,
		Depth:   depth,
		Notice:  notice,
		OnAsync: func(n int) {
			inject(C.PHX_IN_ASYNC)
			atomic.StoreInt32(inFlight, int32(n))
		},
	}, name)
}
