package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// specimen is an open fd of some kind.
type specimen struct {
	what string
	fd   int32
	feed func() // makes data to be consumed; nil: none
}

func specimens(t *testing.T) (all []specimen) {
	t.Helper()
	add := func(what string, fd int, err error, feed func()) {
		if err != nil {
			t.Logf("no %s here: %v", what, err)
			return
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		all = append(all, specimen{what, int32(fd), feed})
	}
	path := func(what, name string, flags int) {
		fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o600)
		add(what, fd, err, nil)
	}
	var p [2]int
	for _, flags := range []int{0, unix.O_NONBLOCK} {
		if err := unix.Pipe2(p[:], flags|unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		w := p[1]
		feed := func() { _, _ = unix.Write(w, []byte("0123456789")) }
		add(fmt.Sprintf("pipe's read end, flags %#x", flags), p[0], nil, feed)
		add(fmt.Sprintf("pipe's write end, flags %#x", flags), p[1], nil, nil)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	add("socket", pair[0], err, func() { _, _ = unix.Write(pair[1], []byte("0123456789")) })
	add("socket's other end", pair[1], err, nil)
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC)
	add("eventfd", fd, err, nil)
	fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	add("timerfd", fd, err, nil)
	fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	add("epoll", fd, err, nil)
	fd, err = unix.InotifyInit1(unix.IN_CLOEXEC)
	add("inotify", fd, err, nil)
	fd, err = unix.PidfdOpen(os.Getpid(), 0)
	add("pidfd", fd, err, nil)
	fd, err = messageQueue()
	add("message queue", fd, err, nil)
	fd, err = unix.Signalfd(-1, new(unix.Sigset_t), unix.SFD_CLOEXEC)
	add("signalfd", fd, err, nil)
	path("terminal", "/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY)
	path("memory of this process", "/proc/self/mem", unix.O_RDONLY)
	for _, name := range []string{"/dev/zero", "/dev/null", "/dev/full", "/dev/urandom"} {
		path(name, name, unix.O_RDWR)
	}
	for _, name := range []string{"/proc/filesystems", "/proc/version", "/proc/self/maps", "/proc/self/cmdline", "/proc/devices", "/sys/kernel/mm/transparent_hugepage/enabled"} {
		path(name, name, unix.O_RDONLY)
	}
	dir := t.TempDir()
	path("directory", dir, unix.O_RDONLY)
	path("O_PATH", dir, unix.O_PATH)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, make([]byte, 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, flags := range map[string]int{
		"read-only": unix.O_RDONLY, "write-only": unix.O_WRONLY, "read-write": unix.O_RDWR, "append": unix.O_RDWR | unix.O_APPEND,
		"non-blocking": unix.O_RDWR | unix.O_NONBLOCK, "direct": unix.O_RDWR | unix.O_DIRECT, "direct, non-blocking": unix.O_RDWR | unix.O_DIRECT | unix.O_NONBLOCK,
	} {
		path("file, "+what, file, flags)
	}
	fd, err = unix.MemfdCreate("specimen", unix.MFD_CLOEXEC)
	if err == nil {
		_, err = unix.Pwrite(fd, make([]byte, 5000), 0)
	}
	add("memfd", fd, err, nil)
	fd, err = unix.MemfdCreate("sealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
	}
	add("sealed memfd", fd, err, nil)
	all = append(all, specimen{"no fd", -1, nil}, specimen{"closed fd", 54321, nil})
	return all
}

// messageQueue makes a POSIX message queue without a name.
func messageQueue() (int, error) {
	name, err := unix.BytePtrFromString(fmt.Sprintf("phx-specimen-%d", os.Getpid()))
	if err != nil {
		return -1, err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	_, _, errno = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// TestEveryKindOfFDAnswersAsPread compares both directions, several extents and
// several addresses on every kind of fd there is. Streams have data waiting,
// which must still be there in the end: a ring would have consumed it.
func TestEveryKindOfFDAnswersAsPread(t *testing.T) {
	e := withRings(t, nil, engine.Config{})
	mem := pages(t, 64<<10)
	for _, s := range specimens(t) {
		if s.feed != nil {
			s.feed()
		}
		for _, k := range []engine.Kind{engine.Read, engine.Write} {
			var ops, want []engine.Op
			for _, n := range []uint64{0, 1, 511, 512, 4096, 9000, 12288} {
				for _, off := range []int64{0, 1, 512, 4096, 9999, 10_000, 20_000} {
					for _, addr := range []engine.HostAddr{addrOf(mem), addrOf(mem) + 1, 16} {
						if k == engine.Write && addr < 4096 && s.what == "/dev/null" {
							continue // it does not look
						}
						ops = append(ops, engine.Op{FD: s.fd, Addr: addr, Len: n, Off: off})
					}
				}
			}
			if k == engine.Write { // no write may change what the next ones see
				ops = ops[:0]
				for _, n := range []uint64{0, 1, 512, 4096} {
					ops = append(ops, engine.Op{FD: s.fd, Addr: addrOf(mem), Len: n, Off: 0}, engine.Op{FD: s.fd, Addr: addrOf(mem) + 1, Len: n, Off: 0}, engine.Op{FD: s.fd, Addr: 16, Len: n, Off: 0})
				}
			}
			want = append(want, ops...)
			plain := engine.NewSync(engine.Config{})
			runSync(plain, k, want)
			plain.Close()
			runSync(e, k, ops)
			for i := range ops {
				if ops[i].Result != want[i].Result && s.what != "/proc/self/maps" {
					t.Errorf("%s, kind %d, %d bytes at %d, address %#x: result %d, want %d", s.what, k, ops[i].Len, ops[i].Off, ops[i].Addr, ops[i].Result, want[i].Result)
				}
			}
		}
		if s.feed != nil {
			if n, err := unix.Read(int(s.fd), make([]byte, 100)); n != 10 {
				t.Errorf("%s: %d bytes are left of 10 (%v)", s.what, n, err)
			}
		}
	}
}

// A read of an empty pipe must not wait for a writer.
func TestEmptyStreamsDoNotHoldABatchUp(t *testing.T) {
	e := withRings(t, nil, engine.Config{})
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	fd, _ := noisy(t, 10*block)
	mem := pages(t, 10*block)
	ops := benchOps(fd, mem, 10)
	for i := 0; i < 10; i += 3 {
		ops[i].FD = int32(p[0])
	}
	for _, async := range []bool{false, true} {
		if async {
			runAsync(t, e, engine.Read, ops)
		} else {
			runSync(e, engine.Read, ops)
		}
		for i := range ops {
			want := int64(block)
			if i%3 == 0 {
				want = -int64(syscall.ESPIPE)
			}
			if ops[i].Result != want {
				t.Errorf("op %d: result %d, want %d", i, ops[i].Result, want)
			}
		}
	}
}

// The same number may be another file in the next batch.
func TestVerdictOnAnFDLastsOneBatch(t *testing.T) {
	e := withRings(t, nil, engine.Config{})
	fd, data := noisy(t, 4*block)
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	const number = 900
	defer unix.Close(number)
	mem := pages(t, 4*block)
	for range 3 {
		for _, from := range []int32{fd, int32(p[0])} {
			if err := unix.Dup3(int(from), number, unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			ops := benchOps(number, mem, 4)
			runSync(e, engine.Read, ops)
			want := int64(block)
			if from != fd {
				want = -int64(syscall.ESPIPE)
			}
			for i := range ops {
				if ops[i].Result != want {
					t.Errorf("op %d: result %d, want %d", i, ops[i].Result, want)
				}
			}
		}
	}
	readBack(t, e, fd, data, 4)
}
