package main

// #include "bridge.h"
import "C"

import (
	"unsafe"

	"libphoenix/core"
)

//export go_open
func go_open(id C.int) (rc, eno C.int) {
	defer contain("phxfs_open", &rc, -1, &eno)
	inject(C.PHX_IN_OPEN)
	if err := process.lib.Open(int(id)); err != nil {
		return openValue(failed(core.Event{Call: "phxfs_open", Device: int32(id), FD: -1}, err))
	}
	return 0, 0
}

//export go_close
func go_close(id C.int) (rc, eno C.int) {
	defer contain("phxfs_close", &rc, -1, &eno)
	inject(C.PHX_IN_CLOSE)
	if err := process.lib.Close(int(id)); err != nil {
		return minusOne(failed(core.Event{Call: "phxfs_close", Device: int32(id), FD: -1}, err))
	}
	return 0, 0
}

//export go_page_size
func go_page_size() (n C.uint64_t, eno C.int) {
	defer contain("phxfs_get_page_size", &n, 65536, &eno)
	inject(C.PHX_IN_PAGE_SIZE)
	return C.uint64_t(process.lib.PageSize()), 0
}

//export go_find_dev
func go_find_dev(ordinal C.int) (rc, eno C.int) {
	defer contain("phxfs_find_dev", &rc, -1, &eno)
	inject(C.PHX_IN_FIND_DEV)
	index, err := process.lib.FindDevice(int(ordinal))
	if err != nil {
		return minusOne(failed(core.Event{Call: "phxfs_find_dev", Device: int32(ordinal), FD: -1}, err))
	}
	return C.int(index), 0
}

//export go_regmem
func go_regmem(id C.int, addr C.uintptr_t, n C.size_t, target *C.uintptr_t) (rc, eno C.int) {
	defer contain("phxfs_regmem", &rc, -eio, &eno)
	inject(C.PHX_IN_REGMEM)
	if target == nil {
		return regmemValue(failed(regEvent("phxfs_regmem", id, addr, n), errNullTarget))
	}
	host, err := process.lib.Register(int(id), core.DevAddr(addr), uint64(n))
	if err != nil {
		return regmemValue(failed(regEvent("phxfs_regmem", id, addr, n), err))
	}
	*target = C.uintptr_t(host)
	return 0, 0
}

//export go_deregmem
func go_deregmem(id C.int, addr C.uintptr_t, n C.size_t) (rc, eno C.int) {
	defer contain("phxfs_deregmem", &rc, -1, &eno)
	inject(C.PHX_IN_DEREGMEM)
	if err := process.lib.Deregister(int(id), core.DevAddr(addr), uint64(n)); err != nil {
		return minusOne(failed(regEvent("phxfs_deregmem", id, addr, n), err))
	}
	return 0, 0
}

//export go_map_mode
func go_map_mode(id C.int) (rc, eno C.int) {
	defer contain("phxfs_get_map_mode", &rc, -eio, &eno)
	inject(C.PHX_IN_MAP_MODE)
	mode, err := process.lib.MapMode(int(id))
	if err != nil {
		return minusErrno(failed(core.Event{Call: "phxfs_get_map_mode", Device: int32(id), FD: -1}, err))
	}
	return C.int(mode), 0
}

//export go_engine_name
func go_engine_name() (uring, eno C.int) {
	defer contain("phxfs_io_engine_name", &uring, 0, &eno)
	inject(C.PHX_IN_ENGINE_NAME)
	if process.lib.EngineName() == "io_uring" {
		return 1, 0
	}
	return 0, 0
}

func regEvent(call string, id C.int, addr C.uintptr_t, n C.size_t) core.Event {
	return core.Event{Call: call, Device: int32(id), Addr: uint64(addr), Len: uint64(n), FD: -1}
}

// requests is the caller's array as core sees it: borrowed, for an async batch
// until its wait (include/phoenix.h). nil with n > 0 is the caller's mistake.
func requests(reqs *C.phxfs_io_req_t, n C.int) ([]core.Request, error) {
	if n <= 0 {
		return nil, nil
	}
	if reqs == nil {
		return nil, errNullRequests
	}
	return unsafe.Slice((*core.Request)(unsafe.Pointer(reqs)), int(n)), nil
}
