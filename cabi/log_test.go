package main

import (
	"syscall"
	"testing"

	"libphoenix/core"
)

func TestLogLineNamesEverything(t *testing.T) {
	e := core.Event{Call: "phxfs_read", Device: 3, Addr: 0x7f0000010000, Len: 4096, Offset: 512, FD: 9,
		Errno: syscall.EFAULT, Reason: `the "buffer" is in no registration`}
	want := `call=phxfs_read device=3 address=0x7f0000010000 length=4096 offset=512 fd=9 errno=EFAULT reason="the \"buffer\" is in no registration"`
	if got := string(appendEvent(nil, e)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e.Errno, e.Reason = 0, "device opened"
	want = `call=phxfs_read device=3 address=0x7f0000010000 length=4096 offset=512 fd=9 reason="device opened"`
	if got := string(appendEvent(nil, e)); got != want {
		t.Errorf("without an errno:\ngot  %s\nwant %s", got, want)
	}
	e.Errno = 4000
	if got := string(appendErrno(nil, e.Errno)); got != "4000" {
		t.Errorf("an errno without a name: got %s, want 4000", got)
	}
}

func TestLogLineAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, lineMax)
	e := core.Event{Call: "phxfs_read", Errno: syscall.EINVAL, Reason: "why"}
	if n := testing.AllocsPerRun(100, func() { buf = appendEvent(buf[:0], e) }); n != 0 {
		t.Errorf("got %v allocations a line, want 0", n)
	}
}
