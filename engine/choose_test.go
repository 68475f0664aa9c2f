package engine_test

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
	"libphoenix/internal/need"
	"libphoenix/internal/uring"
	"libphoenix/internal/uring/uringtest"
)

// chosen reports which engine Choose makes, and checks that it works.
func chosen(t *testing.T, k uring.Kernel, want string) (name, reason string, notices []string) {
	t.Helper()
	e := engine.Choose(engine.Config{Rings: k, Helpers: 1, Notice: func(s string) { notices = append(notices, s) }}, want)
	defer e.Close()
	fd, data := noisy(t, 30*block)
	readBack(t, e, fd, data, 30)
	return e.Name(), engine.Reason(e), notices
}

func TestChooseIsTruthful(t *testing.T) {
	newUring(t, engine.Config{}).Close()
	refusing := func(errno syscall.Errno) uring.Kernel {
		e := uringtest.New(nil)
		e.Refusal = errno
		return e
	}
	doing := func(do func(uringtest.Request) int32) uring.Kernel { return uringtest.New(do) }
	entering := func(errno syscall.Errno) uring.Kernel {
		return &uringtest.Tamper{Kernel: uring.Linux{}, OnEnter: func(uint32, uint32) (uint32, syscall.Errno) { return 0, errno }}
	}
	cases := []struct {
		what   string
		kernel uring.Kernel
		want   string
		name   string
		reason string // part of it
		notice bool
	}{
		{"no wish", nil, "", "io_uring", "read with", false},
		{"io_uring", nil, "io_uring", "io_uring", "read with", false},
		{"sync", nil, "sync", "sync", "asked for", false},
		{"seccomp's EPERM", refusing(syscall.EPERM), "", "sync", syscall.EPERM.Error(), true},
		{"ENOSYS", refusing(syscall.ENOSYS), "io_uring", "sync", syscall.ENOSYS.Error(), true},
		{"ENOMEM whatever the depth", refusing(syscall.ENOMEM), "io_uring", "sync", syscall.ENOMEM.Error(), true},
		{"enter is refused", entering(syscall.EPERM), "", "sync", syscall.EPERM.Error(), true},
		{"enter does nothing", entering(0), "", "sync", syscall.EPROTO.Error(), true},
		{"reads are refused", doing(func(uringtest.Request) int32 { return -int32(syscall.EOPNOTSUPP) }), "", "sync", "refused", true},
		{"reads are empty", doing(func(uringtest.Request) int32 { return 0 }), "", "sync", "gave 0", true},
		{"reads bring nothing", doing(func(q uringtest.Request) int32 { return int32(q.Len) }), "", "sync", "byte 0x0", true},
		{"reads panic", doing(func(uringtest.Request) int32 { panic("scripted") }), "", "sync", "panic", true},
	}
	before := ringFDs(t)
	for _, c := range cases {
		name, reason, notices := chosen(t, c.kernel, c.want)
		if name != c.name || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.what, name, reason, c.name, c.reason)
		}
		if want := map[bool]int{true: 1}[c.notice]; len(notices) != want {
			t.Errorf("%s: notices %q, want %d", c.what, notices, want)
		}
	}
	if n := ringFDs(t) - before; n != 0 {
		t.Errorf("%d ring fds left", n)
	}
}

// TestChooseUnderSeccomp has the kernel refuse io_uring_setup, as container
// runtimes do, on a thread that ends with the test.
func TestChooseUnderSeccomp(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.ENOSYS} {
		var name, reason string
		var err error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread() // never unlocked: the thread dies with its filter
			if err = refuseSetup(errno); err == nil {
				e := engine.Choose(engine.Config{}, "io_uring")
				name, reason = e.Name(), engine.Reason(e)
				e.Close()
			}
		}()
		<-ended
		if err != nil {
			need.Missing(t, need.Seccomp, "%v", err)
		}
		if name != "sync" || !strings.Contains(reason, errno.Error()) {
			t.Errorf("setup gives %v: %s (%s), want sync for that reason", errno, name, reason)
		}
	}
}

// refuseSetup makes io_uring_setup fail on the calling thread for ever.
func refuseSetup(errno syscall.Errno) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the system call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_IO_URING_SETUP, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	p := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0)
}
