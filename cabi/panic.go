package main

// #include "bridge.h"
import "C"

import (
	"fmt"
	"runtime/debug"
	"syscall"

	"libphoenix/core"
)

// eio is the errno of a contained panic.
const eio = C.int(syscall.EIO)

// contain is deferred by every export: a panic is our bug, but the process is
// the user's. It logs the stack and gives the call the value of its contract
// with errno EIO; core has by then released what the call held.
func contain[T C.int | C.int64_t | C.uint64_t](call string, rc *T, value T, eno *C.int) {
	if r := recover(); r != nil {
		logPanic(call, r)
		*rc, *eno = value, eio
	}
}

// containStart is contain for go_start, which has only an errno.
func containStart(eno *C.int) {
	if r := recover(); r != nil {
		logPanic("start", r)
		*eno = eio
	}
}

// containSettle is contain for go_settle, which cannot fail.
func containSettle() {
	if r := recover(); r != nil {
		logPanic("settle", r)
	}
}

// containLog is contain for writing a line: that one is lost, and whoever
// wanted it, perhaps about a panic, goes on.
func containLog() { _ = recover() }

func logPanic(call string, r any) {
	if process.log != nil {
		process.log.note(core.LevelError, call, fmt.Sprintf("panic: %v; stack: %q", r, debug.Stack()))
	}
}
