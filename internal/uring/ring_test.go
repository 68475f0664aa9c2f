package uring_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/internal/need"
	"libphoenix/internal/uring"
	"libphoenix/internal/uring/uringtest"
)

// realRing opens a ring of the real kernel on a thread that stays.
func realRing(t *testing.T, o uring.Options) *uring.Ring {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	r, err := uring.Open(nil, o)
	if err != nil {
		need.Missing(t, need.IOUring, "%v", err)
	}
	t.Cleanup(r.Close)
	return r
}

func both(t *testing.T, part func(t *testing.T, o uring.Options)) {
	t.Run("shared", func(t *testing.T) { part(t, uring.Options{Entries: 8}) })
	t.Run("owned", func(t *testing.T) { part(t, uring.Options{Entries: 8, Owned: true}) })
}

// enter is Enter until n completions are ready: a signal, such as those that the
// Go runtime sends to its threads, ends the wait in the kernel early.
func enter(t *testing.T, r *uring.Ring, n uint32) {
	t.Helper()
	errno := r.Enter(n)
	for ; errno == 0 && r.Ready() < n || errno == syscall.EINTR; errno = r.Await(n) {
	}
	if errno != 0 {
		t.Fatal(errno)
	}
}

// The counters are 32 bits wide and go round; 8 entries make the queues go
// round many times.
func TestReadsAndWritesGoRoundTheQueues(t *testing.T) {
	both(t, func(t *testing.T, o uring.Options) {
		r := realRing(t, o)
		f, err := os.Create(filepath.Join(t.TempDir(), "data"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fd := int32(f.Fd())
		out, in := []byte("0123456789abcdef"), make([]byte, 16)
		addr := func(m []byte, i int) uintptr { return uintptr(unsafe.Pointer(&m[i])) }
		for round := range 300 {
			n := 1 + round%8
			clear(in)
			for _, step := range []struct {
				plain, vector uring.Opcode
				mem           []byte
			}{{uring.Write, uring.Writev, out}, {uring.Read, uring.Readv, in}} {
				for i := range n {
					if round%2 == 0 {
						r.Queue(step.plain, fd, addr(step.mem, 2*i), 2, uint64(2*i), uint64(i))
					} else {
						r.QueueVector(step.vector, fd, addr(step.mem, 2*i), 2, uint64(2*i), uint64(i))
					}
				}
				if got := r.Pending(); got != uint32(n) {
					t.Fatalf("%d pending, want %d", got, n)
				}
				enter(t, r, uint32(n))
				if r.Pending() != 0 || r.InFlight() != uint32(n) || r.Ready() != uint32(n) {
					t.Fatalf("%d pending, %d in flight, %d ready; want 0, %d, %d", r.Pending(), r.InFlight(), r.Ready(), n, n)
				}
				seen := 0
				for range n {
					id, res, ok := r.Next()
					if !ok || res != 2 {
						t.Fatalf("completion %v of %d: %d, want 2", ok, id, res)
					}
					seen |= 1 << id
				}
				if _, _, ok := r.Next(); ok || seen != 1<<n-1 || r.InFlight() != 0 {
					t.Fatalf("one completion too many (%v), ids %#x, %d in flight", ok, seen, r.InFlight())
				}
			}
			if !bytes.Equal(in[:2*n], out[:2*n]) {
				t.Fatalf("read %q, want %q", in[:2*n], out[:2*n])
			}
		}
		runtime.KeepAlive(out)
	})
}

func TestPartialSubmitLeavesTheRestPending(t *testing.T) {
	k := &uringtest.Tamper{Kernel: uring.Linux{}, OnEnter: func(submit, _ uint32) (uint32, syscall.Errno) { return min(submit, 3), 0 }}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, err := uring.Open(k, uring.Options{Entries: 8, Owned: true})
	if err != nil {
		need.Missing(t, need.IOUring, "%v", err)
	}
	defer r.Close()
	for i := range 8 {
		r.Queue(uring.Nop, -1, 0, 0, 0, uint64(i))
	}
	for _, want := range []uint32{5, 2, 0} {
		if errno := r.Enter(8); errno != 0 || r.Pending() != want {
			t.Fatalf("errno %d, %d pending, want %d", errno, r.Pending(), want)
		}
	}
	for i := range uint64(8) {
		if id, _, ok := r.Next(); !ok || id != i {
			t.Fatalf("completion %v of %d, want %d", ok, id, i)
		}
	}
}

func TestWithdrawnRequestsNeverReachTheKernel(t *testing.T) {
	both(t, func(t *testing.T, o uring.Options) {
		r := realRing(t, o)
		for range 20 {
			for range 5 {
				r.Queue(uring.Nop, -1, 0, 0, 0, 1)
			}
			r.Withdraw()
			if r.Pending() != 0 {
				t.Fatalf("%d pending", r.Pending())
			}
			nop(t, r)
		}
	})
}

func TestCancelEndsAReadThatWouldWait(t *testing.T) {
	both(t, func(t *testing.T, o uring.Options) {
		r := realRing(t, o)
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pipe[0])
		defer unix.Close(pipe[1])
		mem := new([8]byte)
		r.Queue(uring.Read, int32(pipe[0]), uintptr(unsafe.Pointer(mem)), 8, 0, 1)
		if errno := r.Enter(0); errno != 0 || r.InFlight() != 1 {
			t.Fatalf("errno %d, %d in flight, want 1", errno, r.InFlight())
		}
		r.QueueCancel(1, 99)
		enter(t, r, 2)
		for range 2 {
			if id, res, ok := r.Next(); !ok || id == 1 && res != -int32(syscall.ECANCELED) || id == 99 && res != 0 {
				t.Errorf("completion %v of %d: %d", ok, id, res)
			}
		}
		runtime.KeepAlive(mem)
	})
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	both(t, func(t *testing.T, o uring.Options) {
		r := realRing(t, o)
		if n := testing.AllocsPerRun(100, func() { nop(t, r) }); n != 0 {
			t.Errorf("%v allocations, want 0", n)
		}
	})
}

// rings is the fds of this process that are rings.
func rings(t *testing.T) (fds []string) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.Contains(to, "[io_uring]") {
			fds = append(fds, e.Name())
		}
	}
	return fds
}

// mapped is how many mappings of rings there are, and how many of them a
// forked child would not get (VmFlags dc).
func mapped(t *testing.T) (all, kept int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	ring := regexp.MustCompile(`(?s)\[io_uring\]\n.*?VmFlags:([^\n]*)`)
	for _, m := range ring.FindAllStringSubmatch(string(text), -1) {
		all++
		if strings.Contains(m[1], " dc") {
			kept++
		}
	}
	return all, kept
}

func TestRingsAreNotInheritedAndLeaveNothing(t *testing.T) {
	both(t, func(t *testing.T, o uring.Options) {
		before := len(rings(t))
		t.Run("open", func(t *testing.T) {
			r := realRing(t, o)
			fds := rings(t)
			want := before
			if r.HoldsFD() {
				want++
			}
			if len(fds) != want {
				t.Fatalf("%d ring fds, want %d", len(fds), want)
			}
			if r.HoldsFD() {
				info, err := os.ReadFile("/proc/self/fdinfo/" + fds[len(fds)-1])
				if err != nil {
					t.Fatal(err)
				}
				if m := regexp.MustCompile(`flags:\s*0*(\d+)`).FindSubmatch(info); len(m) < 2 || !closeOnExec(string(m[1])) {
					t.Errorf("the ring fd is not close-on-exec: %s", info)
				}
			}
			if all, kept := mapped(t); all == 0 || all != kept {
				t.Errorf("%d ring mappings, %d of them kept from children", all, kept)
			}
		})
		if n, _ := mapped(t); n != 0 || len(rings(t)) != before {
			t.Errorf("after Close: %d mappings, %d fds; want 0, %d", n, len(rings(t)), before)
		}
	})
}

// closeOnExec looks for O_CLOEXEC, 02000000, in octal flags.
func closeOnExec(octal string) bool {
	return len(octal) >= 7 && (octal[len(octal)-7]-'0')&2 != 0
}
