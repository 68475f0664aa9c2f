package main

// #include "bridge.h"
import "C"

import "libphoenix/core"

func batchCall(write C.int) string {
	if write != 0 {
		return "phxfs_write_batch"
	}
	return "phxfs_read_batch"
}

func submitCall(write C.int) string {
	if write != 0 {
		return "phxfs_batch_submit_write"
	}
	return "phxfs_batch_submit_read"
}

//export go_batch
func go_batch(write C.int, reqs *C.phxfs_io_req_t, n C.int) (rc, eno C.int) {
	defer contain(batchCall(write), &rc, -eio, &eno)
	inject(C.PHX_IN_BATCH)
	if n <= 0 {
		return 0, 0
	}
	array, err := requests(reqs, n)
	bad := 0
	if err == nil {
		bad, err = process.lib.Run(kind(write), array)
	}
	if err != nil {
		return minusErrno(failed(core.Event{Call: batchCall(write), Len: uint64(n), FD: -1}, err))
	}
	return C.int(bad), 0
}

// go_submit returns the handle, or 0 with an errno.
//
//export go_submit
func go_submit(write C.int, reqs *C.phxfs_io_req_t, n C.int) (handle C.uint64_t, eno C.int) {
	defer contain(submitCall(write), &handle, 0, &eno)
	inject(C.PHX_IN_SUBMIT)
	array, err := requests(reqs, n)
	var h core.Handle
	if err == nil {
		h, err = process.lib.Submit(kind(write), array)
	}
	if err != nil {
		_, eno = minusErrno(failed(core.Event{Call: submitCall(write), Len: uint64(max(n, 0)), FD: -1}, err))
		return 0, eno
	}
	return C.uint64_t(uint64(h) | process.generation<<handleBits), 0
}

// handleBits is how many bits a core.Handle has; above them stands the
// generation, so that handles of the parent mean nothing in a forked child.
const handleBits = 56

// coreHandle is 0, which is no handle, for one of another process.
func coreHandle(handle C.uint64_t) core.Handle {
	if uint64(handle)>>handleBits != process.generation {
		return 0
	}
	return core.Handle(handle & (1<<handleBits - 1))
}

//export go_wait
func go_wait(handle C.uint64_t) (rc, eno C.int) {
	defer contain("phxfs_batch_wait", &rc, -eio, &eno)
	inject(C.PHX_IN_WAIT)
	bad, err := process.lib.Wait(coreHandle(handle))
	if err != nil {
		return minusErrno(failed(core.Event{Call: "phxfs_batch_wait", Addr: uint64(handle), FD: -1}, err))
	}
	return C.int(bad), 0
}

//export go_destroy
func go_destroy(handle C.uint64_t) (rc, eno C.int) {
	defer contain("phxfs_batch_destroy", &rc, -eio, &eno)
	inject(C.PHX_IN_DESTROY)
	if err := process.lib.Destroy(coreHandle(handle)); err != nil {
		return minusErrno(failed(core.Event{Call: "phxfs_batch_destroy", Addr: uint64(handle), FD: -1}, err))
	}
	return 0, 0
}
