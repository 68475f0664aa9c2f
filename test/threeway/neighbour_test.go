package threeway

import (
	"math"
	"math/rand/v2"

	"pgregory.net/rapid"

	"libphoenix/engine"
)

// close draws a batch of a few rows of neighbours in to.
func (d *drawer) close(rt *rapid.T, to *target) {
	for _, seed := range rapid.SliceOfN(rapid.Uint64(), 2, 40).Draw(rt, "requests") {
		d.rng = rand.New(rand.NewPCG(seed, 1))
		if d.number(0, 9) == 0 || !d.neighbour() {
			d.start(to)
		}
	}
}

// start draws a request at which a row may begin.
func (d *drawer) start(to *target) {
	g := int64(of(d, []int{4, 512, 4096, 4096, 4096}))
	n := g * int64(d.number(1, 3))
	blocks := int(to.size/g) + 1
	off := to.origin + g*int64(of(d, []int{0, max(0, blocks-d.number(1, 8)), d.number(0, blocks)}))
	addr, n, ok := d.memory(g, n, to)
	if !ok {
		return
	}
	op := engine.Op{FD: to.fd, Index: uint32(len(d.ops)), Addr: addr, Len: uint64(n), Off: off}
	if d.kind == engine.Write {
		d.apart(&op, to)
	}
	d.ops, d.to = append(d.ops, op), append(d.to, to)
}

// neighbour draws a request that goes on where the last one ends, in the file
// and in memory, so that engines may merge the two: across the end of the file
// too, into memory that is bad, and to files of which two reads are not one.
// False: the last request has no room behind it.
func (d *drawer) neighbour() bool {
	if len(d.ops) == 0 {
		return false
	}
	last, to := &d.ops[len(d.ops)-1], d.to[len(d.to)-1]
	op := *last
	op.Index, op.Addr = uint32(len(d.ops)), d.after()
	n := d.step(int64(last.Len))
	at, room := d.behind(to)
	if n = min(n, room); n <= 0 || op.Off > math.MaxInt64-int64(last.Len)-n {
		return false
	}
	op.Len, op.Off = uint64(n), op.Off+int64(last.Len)
	switch d.number(0, 39) {
	case 0:
		op.Group ^= 1
	case 1:
		op.Off = max(op.Off-1, 0) // an overlap in the file
	}
	if d.kind == engine.Write {
		d.apart(&op, to)
	}
	if at+int(n) <= d.a.main.to {
		d.used = max(d.used, at+int(n)-d.a.main.from)
	}
	d.ops, d.to = append(d.ops, op), append(d.to, to)
	return true
}

// step is how long a neighbour is: mostly like the one before, or as much as
// keeps or breaks its alignment, or makes a legal length of two that are not.
func (d *drawer) step(before int64) int64 {
	if odd := before % 512; odd != 0 && d.number(0, 1) == 0 {
		return 512 - odd
	}
	switch pick := d.number(0, 29); {
	case pick < 16:
		return min(before, 64<<10)
	case pick < 26:
		return 4096 * int64(d.number(1, 4))
	case pick == 26:
		return 512 * int64(d.number(1, 9))
	case pick == 27:
		return 4 * int64(d.number(1, 5))
	default:
		return int64(d.number(1, 5000))
	}
}

// behind is the place behind the memory of the last request and the bytes that
// are free there. Under O_DIRECT they are all good or all bad (doc.go).
func (d *drawer) behind(to *target) (at int, room int64) {
	s := d.a.extent(&d.ops[len(d.ops)-1])
	if s.to == 0 {
		return 0, 0
	}
	if s.to == d.a.main.from+d.used {
		return s.to, int64(d.a.main.to - 4096 - s.to)
	}
	if d.cliffs == 0 {
		return 0, 0
	}
	good, bad := d.a.cliffs[d.cliffs-1], d.a.bad[d.cliffs-1]
	switch {
	case s.from < good.from || s.to > bad.to:
		return 0, 0
	case to.direct && s.to < bad.from:
		return s.to, int64(bad.from - s.to)
	default:
		return s.to, int64(bad.to - s.to)
	}
}
