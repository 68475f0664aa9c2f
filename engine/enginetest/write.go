package enginetest

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

func writes(t *testing.T, make_ New) {
	r := newRig(t, make_, 3, nil)
	const block, small, big = 4096, 500 * 4096, 20<<20 + 777
	mem := memory(t, small+big)
	for where, dir := range dirs(t) {
		r.both(func(name string, do func(engine.Kind, []engine.Op)) {
			copy(mem, noise(uint64(len(where)+len(name)), len(mem)))
			f := newFile(t, dir, nil)
			ops := blocks(f.fd, mem[:small], block, 0)
			ops = append(ops, op(f.fd, mem[small:], small))
			do(engine.Write, ops)
			wantAll(t, where+", "+name, ops)
			if got, err := os.ReadFile(f.path); err != nil || !bytes.Equal(got, mem) {
				t.Errorf("%s, %s: the file has %d bytes, want %d, or other data (%v)", where, name, len(got), len(mem), err)
			}
		})
	}
}

func appendOrder(t *testing.T, make_ New) {
	r := newRig(t, make_, 4, nil)
	mem := memory(t, 40<<20+5)
	copy(mem, noise(5, len(mem)))
	r.both(func(name string, do func(engine.Kind, []engine.Op)) {
		f := newFile(t, t.TempDir(), nil)
		fd := open(t, f.path, unix.O_WRONLY|unix.O_APPEND)
		ops := []engine.Op{op(fd, mem, 0)}
		do(engine.Write, ops)
		wantAll(t, name, ops)
		if got, err := os.ReadFile(f.path); err != nil || !bytes.Equal(got, mem) {
			t.Errorf("%s: the file has %d bytes, want %d, or another order (%v)", name, len(got), len(mem), err)
		}
	})
}
