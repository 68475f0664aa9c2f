package enginetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// dirs are a folder on disk and one in memory (tmpfs), where there is one.
func dirs(t *testing.T) map[string]string {
	d := map[string]string{"disk": t.TempDir()}
	if shm, err := os.MkdirTemp("/dev/shm", "enginetest"); err == nil {
		d["tmpfs"] = shm
		t.Cleanup(func() { _ = os.RemoveAll(shm) })
	}
	return d
}

func randomBatches(t *testing.T, make_ New) {
	r := newRig(t, make_, 3, nil)
	const size, slot = 1 << 20, 20_000
	mem, plain := memory(t, 300*slot), memory(t, slot)
	for where, dir := range dirs(t) {
		f := newFile(t, dir, noise(1, size))
		rnd := rand.New(rand.NewPCG(1, 2))
		for round := range 60 {
			n := rnd.IntN(40)
			if round%10 == 9 {
				n = 300
			}
			ops := make([]engine.Op, n)
			for i := range ops {
				m := mem[i*slot:][:rnd.IntN(slot)]
				ops[i] = op(f.fd, m, rnd.Int64N(size+size/8))
			}
			clear(mem)
			do := r.sync
			if round%2 == 1 && n > 0 {
				do = r.async
			}
			do(engine.Read, ops)
			for i := range ops {
				want, err := unix.Pread(int(f.fd), plain[:ops[i].Len], ops[i].Off)
				if err != nil {
					t.Fatal(err)
				}
				wantOp(t, fmt.Sprintf("%s, round %d", where, round), i, ops[i], int64(want), mem[i*slot:], plain)
			}
		}
	}
}

func everyBatchSize(t *testing.T, make_ New) {
	r := newRig(t, make_, 3, nil)
	const block = 512
	f := newFile(t, t.TempDir(), noise(2, 20_000*block))
	mem := memory(t, 20_000*block)
	for i, n := range []int{0, 1, 2, 32, 1000, 20_000, 2, 32, 1000, 20_000} {
		r.merges = i > 5
		r.both(func(name string, do func(engine.Kind, []engine.Op)) {
			if n == 0 && name == "async" {
				return
			}
			clear(mem)
			ops := blocks(f.fd, mem[:n*block], block, 0)
			do(engine.Read, ops)
			wantAll(t, fmt.Sprintf("%s, n %d", name, n), ops)
			if !bytes.Equal(mem[:n*block], f.data[:n*block]) {
				t.Errorf("%s, n %d: wrong data", name, n)
			}
		})
	}
}

// blocks reads or writes mem in ops of block bytes, from the file offset off.
func blocks(fd int32, mem []byte, block int, off int64) []engine.Op {
	ops := make([]engine.Op, len(mem)/block)
	for i := range ops {
		ops[i] = op(fd, mem[i*block:][:block], off+int64(i*block))
	}
	return ops
}

func bigOps(t *testing.T, make_ New) {
	r := newRig(t, make_, 3, nil)
	const size, tail = 100 << 20, 12_345
	f := sparse(t, size+tail)
	mark := noise(3, 64)
	places := []int{0, 8<<20 - 32, 8 << 20, 56<<20 - 1, 99 << 20, size + tail - 64} // about borders of slices
	for _, at := range places {
		if _, err := unix.Pwrite(int(f.fd), mark, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	mem := memory(t, size+8<<20)
	r.both(func(name string, do func(engine.Kind, []engine.Op)) {
		clear(mem)
		ops := []engine.Op{op(f.fd, mem, 0), op(f.fd, mem[:0], 0), op(f.fd, mem[:9<<20], size+tail)}
		ops[2].Addr = ops[0].Addr // reads nothing: it starts at the end
		do(engine.Read, ops)
		for i, want := range []int64{size + tail, 0, 0} {
			if ops[i].Result != want {
				t.Errorf("%s, op %d: result %d, want %d", name, i, ops[i].Result, want)
			}
		}
		for _, at := range places {
			if !bytes.Equal(mem[at:][:32], mark[:32]) {
				t.Errorf("%s: wrong data at %d", name, at)
			}
		}
	})
}

func endOfFile(t *testing.T, make_ New) {
	r := newRig(t, make_, 2, nil)
	const size, block = 10_000, 4096
	f := newFile(t, t.TempDir(), noise(4, size))
	mem := memory(t, 8*block)
	r.both(func(name string, do func(engine.Kind, []engine.Op)) {
		ops := blocks(f.fd, mem, block, 0)
		do(engine.Read, ops)
		for i := range ops {
			want := min(max(size-int64(i*block), 0), block)
			wantOp(t, name, i, ops[i], want, mem[i*block:], f.data[min(i*block, size):])
		}
	})
}

func manyFiles(t *testing.T, make_ New) {
	r := newRig(t, make_, 2, nil)
	const files, block = 20, 3000
	mem := memory(t, files*block)
	var all []file
	for i := range files {
		all = append(all, newFile(t, t.TempDir(), noise(uint64(i), 2*block)))
	}
	r.both(func(name string, do func(engine.Kind, []engine.Op)) {
		clear(mem)
		ops := make([]engine.Op, files)
		for i, f := range all {
			ops[i] = op(f.fd, mem[i*block:][:block], int64(i))
		}
		do(engine.Read, ops)
		for i, f := range all {
			wantOp(t, name, i, ops[i], block, mem[i*block:], f.data[i:])
		}
	})
}
