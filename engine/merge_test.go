package engine

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Rows of neighbours become runs that cover each op once, in order, and are as
// long as they may be and no longer.
func TestRunsAreBoundedAndCoverEveryOp(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 64 << 20
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, most := range []uint64{10, 4096, 64 << 10, mergedBytes - 1, mergedBytes, mergedBytes + 1, 2 * sliceBytes} {
		b := &Batch{}
		for off := uint64(0); off < size && len(b.Ops) < 3000; {
			n := min(1+rnd.Uint64N(most), size-off)
			b.Ops = append(b.Ops, Op{FD: int32(f.Fd()), Addr: HostAddr(1<<40 + off), Len: n, Off: int64(off)})
			off += n
		}
		l := b.prepare()
		units, next, before := int64(0), uint64(0), uint64(mergedBytes)
		for at := uint64(0); at < b.end(); at = b.next(at) {
			units++
			op, start, n := b.unit(at)
			if got := uint64(op.Off) + start; got != next {
				t.Fatalf("lengths up to %d: unit %#x begins at %d, want %d", most, at, got, next)
			}
			next += n
			if ops := -op.slices; ops > 1 && n > mergedBytes {
				t.Errorf("lengths up to %d: a run of %d ops has %d bytes", most, ops, n)
			}
			if op.slices <= 1 && start == 0 && before+op.Len <= mergedBytes {
				t.Errorf("lengths up to %d: the unit at %d has %d bytes and could go with the %d before it", most, op.Off, n, before)
			}
			before = n
		}
		if last := &b.Ops[len(b.Ops)-1]; next != uint64(last.Off)+last.Len || units != l.units {
			t.Errorf("lengths up to %d: %d units up to %d, want %d up to %d", most, units, next, l.units, uint64(last.Off)+last.Len)
		}
	}
}
