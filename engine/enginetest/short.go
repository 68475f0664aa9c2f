package enginetest

import (
	"fmt"
	"syscall"
	"testing"

	"libphoenix/engine"
	"libphoenix/engine/fault"
)

const kinds = 2 // engine.Read and engine.Write

func everyShortCount(t *testing.T, make_ New) {
	r := newRig(t, make_, 1, new(fault.Script))
	const size = 33
	f := newFile(t, t.TempDir(), noise(15, 3*size))
	mem := memory(t, 3*size)
	for k := range engine.Kind(kinds) {
		for short := range uint64(size + 1) {
			for place := range 3 {
				r.both(func(name string, do func(engine.Kind, []engine.Op)) {
					copy(mem, f.data) // a write writes what is there
					if k == engine.Read {
						clear(mem)
					}
					r.script.Reset()
					r.script.Add(fault.On(k).At(int64(place * size)).Nth(1).Short(short))
					ops := blocks(f.fd, mem, size, 0)
					do(k, ops)
					for i := range ops {
						want := int64(size)
						if i == place && short == 0 {
							want = 0
						}
						wantOp(t, fmt.Sprintf("%s, kind %d, short %d", name, k, short), i, ops[i], want, mem[i*size:], f.data[i*size:])
					}
					calls := int64(3)
					if short > 0 && short < size {
						calls = 4
					}
					if got := r.script.Calls(); got != calls {
						t.Errorf("%s, kind %d, short %d: %d calls, want %d", name, k, short, got, calls)
					}
				})
			}
		}
	}
}

func errorAfterProgress(t *testing.T, make_ New) {
	r := newRig(t, make_, 1, new(fault.Script))
	const size = 33
	f := newFile(t, t.TempDir(), noise(16, size))
	mem := memory(t, size)
	for k := range engine.Kind(kinds) {
		for short := uint64(1); short < size; short++ {
			for _, then := range []fault.Rule{fault.On(k).Nth(1).Fail(syscall.EIO), fault.On(k).Nth(1).Short(0)} {
				r.both(func(name string, do func(engine.Kind, []engine.Op)) {
					r.script.Reset()
					r.script.Add(fault.On(k).Nth(1).Short(short), then)
					copy(mem, f.data)
					ops := blocks(f.fd, mem, size, 0)
					do(k, ops)
					wantOp(t, name, 0, ops[0], int64(short), mem, f.data)
				})
			}
		}
	}
}

func everyPosition(t *testing.T, make_ New) {
	r := newRig(t, make_, 1, new(fault.Script))
	const n = 5
	f := newFile(t, t.TempDir(), noise(17, n*block))
	mem := memory(t, n*block)
	for k := range engine.Kind(kinds) {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.EAGAIN, syscall.EBUSY, syscall.EFAULT, syscall.EINVAL, syscall.ENOSPC, syscall.ENOMEM} {
			for bad := range n {
				r.both(func(name string, do func(engine.Kind, []engine.Op)) {
					r.script.Reset()
					r.script.Add(fault.On(k).FD(f.fd).At(int64(bad * block)).Fail(errno))
					copy(mem, f.data)
					ops := blocks(f.fd, mem, block, 0)
					do(k, ops)
					for i := range ops {
						want := int64(block)
						if i == bad {
							want = -int64(errno)
						}
						wantOp(t, fmt.Sprintf("%s, %v", name, errno), i, ops[i], want, mem[i*block:], f.data[i*block:])
					}
				})
			}
		}
	}
}

func interrupted(t *testing.T, make_ New) {
	r := newRig(t, make_, 1, new(fault.Script))
	f := newFile(t, t.TempDir(), noise(18, 3*block))
	mem := memory(t, 3*block)
	for k := range engine.Kind(kinds) {
		r.both(func(name string, do func(engine.Kind, []engine.Op)) {
			r.script.Reset()
			for range 4 {
				r.script.Add(fault.On(k).At(block).Nth(1).Fail(syscall.EINTR))
			}
			r.script.Add(fault.On(k).At(block).Nth(1).Short(10), fault.On(k).At(block+10).Nth(1).Fail(syscall.EINTR))
			copy(mem, f.data)
			ops := blocks(f.fd, mem, block, 0)
			do(k, ops)
			wantAll(t, name, ops)
			if got, want := r.script.Calls(), int64(3+4+2); got != want {
				t.Errorf("%s: %d calls, want %d", name, got, want)
			}
		})
	}
}

func badSlice(t *testing.T, make_ New) {
	r := newRig(t, make_, 3, new(fault.Script))
	const slice, size = 8 << 20, 40 << 20
	f, other := sparse(t, size), sparse(t, block)
	mem := memory(t, size+block)
	on := fault.On(engine.Read).FD(f.fd)
	at := func(i int64) fault.Rule { return on.At(i * slice) }
	cases := []struct {
		what  string
		rules []fault.Rule
		want  int64
	}{
		{"no fault", nil, size},
		{"first slice fails", []fault.Rule{at(0).Fail(syscall.EIO)}, -int64(syscall.EIO)},
		{"first slice is empty", []fault.Rule{at(0).Short(0)}, 0},
		{"middle slice fails", []fault.Rule{at(2).Fail(syscall.EIO)}, 2 * slice},
		{"middle slice is empty", []fault.Rule{at(2).Short(0)}, 2 * slice},
		{"middle slice fails after progress", []fault.Rule{at(2).Short(1000), on.At(2*slice + 1000).Fail(syscall.EIO)}, 2*slice + 1000},
		{"middle slice goes on after a short count", []fault.Rule{at(2).Short(1000)}, size},
		{"last slice fails", []fault.Rule{at(4).Fail(syscall.EIO)}, 4 * slice},
		{"two slices fail", []fault.Rule{at(3).Fail(syscall.EIO), at(1).Fail(syscall.ENOMEM)}, slice},
		{"all slices fail", []fault.Rule{on.Between(0, size).Fail(syscall.ENXIO)}, -int64(syscall.ENXIO)},
	}
	for _, c := range cases {
		for alone := range 2 {
			r.both(func(name string, do func(engine.Kind, []engine.Op)) {
				r.script.Reset()
				r.script.Add(c.rules...)
				ops := []engine.Op{op(f.fd, mem[:size], 0), op(other.fd, mem[size:], 0)}[:2-alone]
				do(engine.Read, ops)
				if got := ops[0].Result; got != c.want {
					t.Errorf("%s, %s: result %d, want %d", c.what, name, got, c.want)
				}
				if alone == 0 {
					wantAll(t, c.what+", neighbour", ops[1:])
				}
			})
		}
	}
}
