package enginetest

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

// lengths are those of four neighbours, of runBytes together.
var lengths = []int{7, 1, 12, 5}

const runBytes = 25

// neighbours are followed by a stranger.
func neighbours(f file, mem []byte) []engine.Op {
	var ops []engine.Op
	at := 0
	for _, n := range lengths {
		ops = append(ops, op(f.fd, mem[at:][:n], int64(at)))
		at += n
	}
	return append(ops, op(f.fd, mem[at+1:][:8], int64(at+1)))
}

// mergeRig is a scripted rig whose ops may be merged, and a file to use.
func mergeRig(t *testing.T, make_ New) (*rig, file, []byte) {
	r := newRig(t, make_, 1, new(fault.Script))
	r.merges = true
	return r, newFile(t, t.TempDir(), noise(19, runBytes+9)), memory(t, block)
}

// runs tells the story part for each direction and order, with memory that
// shows what a read has brought, or that a write has something to write.
func (r *rig) runs(f file, mem []byte, part func(name string, k engine.Kind, do func([]engine.Op))) {
	for k := range engine.Kind(kinds) {
		r.both(func(name string, do func(engine.Kind, []engine.Op)) {
			part(fmt.Sprintf("%s, kind %d", name, k), k, func(ops []engine.Op) {
				clear(mem)
				if k == engine.Write {
					copy(mem, f.data)
				}
				do(k, ops)
			})
		})
	}
}

func mergedCalls(t *testing.T, make_ New) {
	r, f, mem := mergeRig(t, make_)
	r.runs(f, mem, func(name string, _ engine.Kind, do func([]engine.Op)) {
		for _, n := range []int{2, 3, 4, 5} { // with 5 the stranger is there, too
			r.script.Reset()
			ops := neighbours(f, mem)[:n]
			do(ops)
			wantAll(t, name, ops)
			want := int64(1)
			if n == 5 {
				want = 2
			}
			if got := r.script.Calls(); got != want {
				t.Errorf("%s, %d ops: %d calls, want %d", name, n, got, want)
			}
			if at := int(ops[n-1].Off) + int(ops[n-1].Len); n < 5 && !bytes.Equal(mem[:at], f.data[:at]) {
				t.Errorf("%s, %d ops: wrong data", name, n)
			}
		}
	})
}

// Wherever a run stops for once, every op is complete in the end.
func mergedShort(t *testing.T, make_ New) {
	r, f, mem := mergeRig(t, make_)
	r.runs(f, mem, func(name string, k engine.Kind, do func([]engine.Op)) {
		for short := range uint64(runBytes + 1) {
			for _, n := range []int{4, 5} {
				r.script.Reset()
				r.script.Add(fault.On(k).At(0).Nth(1).Short(short))
				ops := neighbours(f, mem)[:n]
				do(ops)
				wantAll(t, fmt.Sprintf("%s, short %d", name, short), ops)
				if !bytes.Equal(mem[:runBytes], f.data[:runBytes]) {
					t.Errorf("%s, short %d: wrong data", name, short)
				}
			}
		}
	})
}

// An op that fails, wholly or after some bytes, does not spoil its neighbours.
func mergedFailure(t *testing.T, make_ New) {
	r, f, mem := mergeRig(t, make_)
	r.runs(f, mem, func(name string, k engine.Kind, do func([]engine.Op)) {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.EFAULT, syscall.EINVAL, syscall.EAGAIN, syscall.ENOSPC} {
			for bad := range lengths {
				for moved := range uint64(lengths[bad]) {
					off := neighbours(f, mem)[bad].Off
					first := fault.On(k).At(0).Nth(1)
					r.script.Reset()
					if moved == 0 && bad == 0 {
						r.script.Add(fault.On(k).At(0).Fail(errno))
					} else {
						r.script.Add(first.Short(uint64(off) + moved))
						if moved > 0 {
							r.script.Add(fault.On(k).At(off).Short(moved))
						}
						// What the run itself may try next, and the op.
						r.script.Add(fault.On(k).At(off + int64(moved)).Fail(errno))
					}
					ops := neighbours(f, mem)
					do(ops)
					what := fmt.Sprintf("%s, %v after %d bytes of op %d", name, errno, moved, bad)
					for i := range ops {
						want := int64(ops[i].Len)
						if i == bad && moved == 0 {
							want = -int64(errno)
						} else if i == bad {
							want = int64(moved)
						}
						wantOp(t, what, i, ops[i], want, mem[ops[i].Off:], f.data[ops[i].Off:])
					}
				}
			}
		}
	})
}

// notMerged counts calls: one for each op.
func notMerged(t *testing.T, make_ New) {
	r, f, mem := mergeRig(t, make_)
	appends := f
	appends.fd = open(t, f.path, unix.O_RDWR|unix.O_APPEND)
	zero := file{fd: open(t, "/proc/self/auxv", unix.O_RDONLY)}
	again := f
	again.fd = open(t, f.path, unix.O_RDWR)
	two := func(f file, a, b int) []engine.Op { // two neighbours of a and b bytes
		return []engine.Op{op(f.fd, mem[:a], 0), op(f.fd, mem[a:][:b], int64(a))}
	}
	with := func(change func(ops []engine.Op)) []engine.Op {
		ops := two(f, 8, 8)
		change(ops)
		return ops
	}
	size := int64(len(f.data))
	cases := []struct {
		what string
		ops  []engine.Op
		want []int64
	}{
		{"a gap in the file", with(func(o []engine.Op) { o[1].Off++ }), nil},
		{"a gap in memory", with(func(o []engine.Op) { o[1].Addr++ }), nil},
		{"an overlap", with(func(o []engine.Op) { o[1].Off--; o[1].Addr-- }), nil},
		{"the same again", with(func(o []engine.Op) { o[1] = o[0] }), nil},
		{"backwards", with(func(o []engine.Op) { o[0], o[1] = o[1], o[0] }), nil},
		{"another fd", with(func(o []engine.Op) { o[1].FD = again.fd }), nil},
		{"another group", with(func(o []engine.Op) { o[1].Group = 7 }), nil},
		{"O_APPEND", two(appends, 8, 8), nil},
		{"a file of /proc", two(zero, 8, 8), nil},
		{"beyond the end", []engine.Op{op(f.fd, mem[:8], size-12), op(f.fd, mem[8:][:8], size-4)}, []int64{8, 4}},
	}
	for _, c := range cases {
		r.both(func(name string, do func(engine.Kind, []engine.Op)) {
			r.script.Reset()
			clear(mem)
			do(engine.Read, c.ops)
			for i := range c.ops {
				want := int64(c.ops[i].Len)
				if c.want != nil {
					want = c.want[i]
				}
				if got := c.ops[i].Result; got != want {
					t.Errorf("%s, %s, op %d: result %d, want %d", c.what, name, i, got, want)
				}
			}
			calls := int64(len(c.ops))
			if c.want != nil {
				calls++ // the short one asks once more
			}
			if got := r.script.Calls(); got != calls {
				t.Errorf("%s, %s: %d calls, want %d", c.what, name, got, calls)
			}
		})
	}
}
