package main

// #include "bridge.h"
import "C"

import (
	"syscall"

	"libphoenix/core"
	"libphoenix/engine"
)

func kind(write C.int) engine.Kind {
	if write != 0 {
		return engine.Write
	}
	return engine.Read
}

func singleCall(write C.int) string {
	if write != 0 {
		return "phxfs_write"
	}
	return "phxfs_read"
}

func singleEvent(write, fd, id C.int, buf C.uintptr_t, bufOffset C.off_t, n C.ssize_t, offset C.off_t) core.Event {
	return core.Event{
		Call:   singleCall(write),
		Device: int32(id),
		Addr:   uint64(buf) + uint64(bufOffset),
		Len:    uint64(n),
		Offset: int64(offset),
		FD:     int32(fd),
	}
}

//export go_transfer
func go_transfer(write, fd, id C.int, buf C.uintptr_t, bufOffset C.off_t, n C.ssize_t, offset C.off_t) (rc C.int64_t, eno C.int) {
	defer contain(singleCall(write), &rc, -C.int64_t(eio), &eno)
	inject(C.PHX_IN_TRANSFER)
	moved, err := process.lib.Transfer(kind(write), int32(fd), int32(id), core.DevAddr(buf),
		int64(bufOffset), int64(n), int64(offset))
	if err != nil {
		return transferValue(failed(singleEvent(write, fd, id, buf, bufOffset, n, offset), err))
	}
	return C.int64_t(moved), 0
}

// go_single_short logs a plain-memory read or write that moved fewer bytes in
// the shim than it was asked for: it failed, if it has moved none and there is
// an errno.
//
//export go_single_short
func go_single_short(write, fd, id C.int, buf C.uintptr_t, bufOffset C.off_t, n C.ssize_t, offset C.off_t, moved C.size_t, why C.int) {
	var rc, eno C.int
	defer contain(singleCall(write), &rc, 0, &eno)
	inject(C.PHX_IN_SINGLE_SHORT)
	e := singleEvent(write, fd, id, buf, bufOffset, n, offset)
	if moved > 0 || why == 0 {
		process.log.Event(core.Short(e, int64(moved), syscall.Errno(why)))
		return
	}
	var err error = syscall.Errno(why)
	if bad := core.CheckTransfer(int32(id), core.DevAddr(buf), int64(bufOffset), int64(n), int64(offset)); bad != nil {
		err = bad
	}
	failed(e, err)
}
