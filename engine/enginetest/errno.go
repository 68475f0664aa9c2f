package enginetest

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
	"libphoenix/internal/need"
)

func ownErrno(t *testing.T, make_ New) {
	r := newRig(t, make_, 2, nil)
	dir := t.TempDir()
	f := newFile(t, dir, noise(6, 8192))
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	const gone = 1000 // opened and closed
	if err := unix.Dup3(int(f.fd), gone, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(gone)
	mem := memory(t, 4096)
	whole, none, wild := op(0, mem, 0), op(0, mem[:0], 0), op(0, mem, 0)
	wild.Addr = 8

	cases := []struct {
		what string
		kind engine.Kind
		op   engine.Op
		fd   int32
		want int64
	}{
		{"no fd", engine.Read, whole, -1, -int64(syscall.EBADF)},
		{"closed fd", engine.Read, whole, gone, -int64(syscall.EBADF)},
		{"pipe, read end", engine.Read, whole, int32(pipe[0]), -int64(syscall.ESPIPE)},
		{"pipe, write end", engine.Write, whole, int32(pipe[1]), -int64(syscall.ESPIPE)},
		{"directory", engine.Read, whole, open(t, dir, unix.O_RDONLY|unix.O_DIRECTORY), -int64(syscall.EISDIR)},
		{"read of a write-only fd", engine.Read, whole, open(t, f.path, unix.O_WRONLY), -int64(syscall.EBADF)},
		{"write to a read-only fd", engine.Write, whole, open(t, f.path, unix.O_RDONLY), -int64(syscall.EBADF)},
		{"wild address", engine.Read, wild, f.fd, -int64(syscall.EFAULT)},
		{"nothing, no fd", engine.Read, none, -1, 0},
		{"nothing, to a pipe", engine.Write, none, int32(pipe[1]), 0},
	}
	good := op(f.fd, memory(t, 4096), 100)
	for _, c := range cases {
		c.op.FD = c.fd
		r.both(func(name string, do func(engine.Kind, []engine.Op)) {
			for n := 1; n <= 3; n += 2 { // alone, and between two good ones
				ops := []engine.Op{c.op}
				if n == 3 {
					ops = []engine.Op{good, c.op, good}
				}
				do(c.kind, ops)
				if got := ops[n/2].Result; got != c.want {
					t.Errorf("%s, %s, %d ops: result %d, want %d", c.what, name, n, got, c.want)
				}
				if n == 3 {
					wantAll(t, c.what+", neighbours", []engine.Op{ops[0], ops[2]})
				}
			}
		})
	}
}

func misaligned(t *testing.T, make_ New) {
	r := newRig(t, make_, 2, nil)
	f := newFile(t, t.TempDir(), noise(7, 64<<10))
	direct, err := unix.Open(f.path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		need.Missing(t, need.ODirect, "open: %v", err)
	}
	defer unix.Close(direct)
	mem := memory(t, 32<<10)
	fd := int32(direct)
	ops := func() []engine.Op {
		return []engine.Op{
			op(fd, mem[:4096], 0), op(fd, mem[1:][:4096], 0), op(fd, mem[:100], 0), op(fd, mem[:4096], 1),
			op(fd, mem[8192:][:16384], 56<<10), // ends at the end of the file
		}
	}
	want := ops()
	for i := range want {
		start := int(want[i].Addr - want[0].Addr)
		n, err := unix.Pread(direct, mem[start:][:want[i].Len], want[i].Off)
		want[i].Result = int64(n)
		if err != nil {
			want[i].Result = -int64(err.(syscall.Errno))
		}
	}
	if want[3].Result != -int64(syscall.EINVAL) {
		need.Missing(t, need.ODirect, "this file system accepts what is misaligned (result %d)", want[3].Result)
	}
	r.both(func(name string, do func(engine.Kind, []engine.Op)) {
		got := ops()
		do(engine.Read, got)
		for i := range got {
			if got[i].Result != want[i].Result {
				t.Errorf("%s, op %d: result %d, want %d", name, i, got[i].Result, want[i].Result)
			}
		}
	})
}
