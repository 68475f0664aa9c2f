package threeway

import (
	"math"
	"math/rand/v2"

	"pgregory.net/rapid"

	"libphoenix/engine"
)

// drawer draws the requests of one batch. Each comes from a seed of its own:
// rapid, whose numbers are mostly small, would seldom pick the rare cases; what
// it shrinks is the number of requests.
type drawer struct {
	rng    *rand.Rand // of the request being drawn
	a      *arena
	kind   engine.Kind
	big    bool // lengths beyond one slice too
	used   int  // of a.main
	cliffs int  // taken
	ops    []engine.Op
	to     []*target // of each op
	deep   bool      // the abyss is taken
	chains int       // of 100 requests, how many go on where the last one ends
}

// batch draws up to most requests to targets. It may be fewer: memory ends.
func (d *drawer) batch(rt *rapid.T, targets []*target, most int) {
	least := rapid.SampledFrom([]int{1, 2, 8, 30, 60}).Draw(rt, "at least")
	d.chains = rapid.SampledFrom([]int{0, 50, 90, 97}).Draw(rt, "neighbours")
	for _, seed := range rapid.SliceOfN(rapid.Uint64(), min(least, most), most).Draw(rt, "requests") {
		d.rng = rand.New(rand.NewPCG(seed, 0))
		if d.number(0, 99) < d.chains && d.neighbour() {
			continue
		}
		if !d.request(of(d, targets)) {
			return
		}
	}
}

// number is one of from..to.
func (d *drawer) number(from, to int) int { return from + d.rng.IntN(to-from+1) }

func of[T any](d *drawer, all []T) T { return all[d.rng.IntN(len(all))] }

// request draws one. False: no memory is left.
func (d *drawer) request(to *target) bool {
	op := engine.Op{FD: to.fd, Index: uint32(len(d.ops)), Group: uint32(d.number(0, 1))}
	g := of(d, []int64{1, 1, 1, 512, 512, 4096, 4096, 4096})
	n := d.length(to, g)
	off := d.offset(to, g, n)
	addr, n, ok := d.memory(g, n, to)
	if !ok {
		return false
	}
	if last := len(d.ops) - 1; last >= 0 && addr == d.ops[last].Addr+engine.HostAddr(d.ops[last].Len) && d.to[last] == to {
		off = d.ops[last].Off + int64(d.ops[last].Len) // a neighbour in the file, too
	}
	op.Addr, op.Len, op.Off = addr, uint64(n), max(0, min(off, math.MaxInt64-n))
	if d.kind == engine.Write {
		d.apart(&op, to)
	}
	d.ops, d.to = append(d.ops, op), append(d.to, to)
	return true
}

// length draws how many bytes.
func (d *drawer) length(to *target, g int64) int64 {
	pick := d.number(0, 11)
	if d.big && pick < 4 {
		return of(d, []int64{8<<20 - 1, 8 << 20, 8<<20 + 1, 9 << 20, 16 << 20, 17<<20 + 13})
	}
	switch {
	case pick == 0:
		return 0
	case pick == 1:
		return int64(d.number(1, 9))
	case pick < 6:
		return g * int64(d.number(1, int(max(1, 8192/g))))
	case pick < 8:
		return 4096*int64(d.number(1, 4)) + int64(d.number(-1, 1))
	case pick == 8:
		return min(to.size, 64<<10)
	default:
		return int64(d.number(1, 5000))
	}
}

// offset draws where in the file.
func (d *drawer) offset(to *target, g, n int64) int64 {
	size := int(to.size)
	off := int64(0)
	switch pick := d.number(0, 15); {
	case pick < 9:
		off = int64(d.number(0, max(size-1, 0)))
	case pick < 11:
		off = int64(size - d.number(0, min(size, 9000)))
	case pick == 11:
		return to.origin + to.size
	case pick == 12:
		off = int64(size + d.number(0, 60<<10))
	case pick == 13:
		return to.origin
	case to.far:
		off = of(d, []int64{1<<31 - 1, 1 << 31, 1<<32 - 4096, 1<<32 + 3, 1 << 40, 1 << 43, 1<<44 - 8192, 1 << 44, 1 << 62,
			math.MaxInt64 - n, math.MaxInt64 - n - 4096})
	}
	return to.origin + off&^(g-1)
}

// apart moves a write away from the earlier ones of the batch to the same
// file: they have no order.
func (d *drawer) apart(op *engine.Op, to *target) {
	reach := func(o *engine.Op) int64 { return o.Off + int64(min(o.Len, 64<<20)) }
	for i := range d.ops {
		o := &d.ops[i]
		if d.to[i] == to && op.Off < reach(o) && o.Off < reach(op) {
			step := int64(128 << 10)
			if d.big {
				step = 32 << 20
			}
			op.Off = to.origin + to.size + step*int64(len(d.ops)+1)
			return // beyond all usual places, each at its own
		}
	}
}
