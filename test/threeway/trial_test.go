package threeway

import (
	"bytes"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"libphoenix/engine"
)

// trial is one batch carried out by all.
type trial struct {
	rt      *rapid.T
	a       *arena
	engines []runner
	kind    engine.Kind
	order   engine.Order
	ops     []engine.Op
	to      []*target
	results []int64 // of the plain loop
	left    [][]byte
}

func (b *trial) check() {
	if len(b.ops) == 0 {
		return
	}
	defer b.restore()
	b.a.reset(b.ops)
	plain().run(b.kind, b.order, b.ops)
	b.a.keep(b.ops)
	b.vague()
	b.canaries()
	for i := range b.ops {
		b.results = append(b.results, b.ops[i].Result)
	}
	b.left = b.state()
	for _, r := range b.engines {
		b.restore()
		b.a.reset(b.ops)
		r.run(b.kind, b.order, b.ops)
		b.compare(r)
	}
}

// restore gives the files their first contents.
func (b *trial) restore() {
	if b.kind == engine.Write {
		b.each(func(to *target) {
			if to.reset != nil {
				to.reset()
			}
		})
	}
}

// state is what the batch left in the files.
func (b *trial) state() (left [][]byte) {
	if b.kind == engine.Write {
		b.each(func(to *target) {
			if to.state != nil {
				left = append(left, to.state(b.ops, b.to))
			}
		})
	}
	return left
}

func (b *trial) each(f func(*target)) {
	for i, to := range b.to {
		if slices.Index(b.to, to) == i {
			f(to)
		}
	}
}

// vague takes out of the comparison what is unspecified: behind the result of
// a sliced request, and the data of a file that is never the same.
func (b *trial) vague() {
	for i := range b.ops {
		op := &b.ops[i]
		s := b.a.extent(op)
		switch {
		case b.kind == engine.Write:
		case b.to[i].hazy:
			b.a.ignore(s, b.a.want)
		case op.Len > 8<<20:
			b.a.ignore(span{s.from + int(max(0, op.Result)), s.to}, b.a.want)
		}
	}
}

// canaries checks the plain loop itself: it changes memory only inside the
// requests. What it made of that is in a.want already.
func (b *trial) canaries() {
	if b.kind == engine.Read {
		for i := range b.ops {
			b.a.ignore(b.a.extent(&b.ops[i]), nil)
		}
	}
	if at := b.a.differs(b.ops, b.a.noise); at >= 0 {
		b.rt.Fatalf("the plain loop changed memory outside the requests, at +%#x\n%s", at, b.table(-1))
	}
}

func (b *trial) compare(r runner) {
	for i := range b.ops {
		if got, want := b.ops[i].Result, b.results[i]; got != want {
			b.rt.Fatalf("%s: result %d of request %d, plain loop %d\n%s", r.name, got, i, want, b.table(i))
		}
	}
	b.vague()
	if at := b.a.differs(b.ops, b.a.want); at >= 0 {
		b.rt.Fatalf("%s: memory at +%#x is %#x, plain loop %#x\n%s", r.name, at, b.a.mem[at], b.a.want[at-belowBytes], b.table(b.owner(at)))
	}
	for i, got := range b.state() {
		if want := b.left[i]; !bytes.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			b.rt.Fatalf("%s: the writes left another state in file %d than the plain loop, from byte %d of %d, %d:\n%x\n%x\n%s",
				r.name, i, at, len(got), len(want), got[at:min(at+64, len(got))], want[at:min(at+64, len(want))], b.table(-1))
		}
	}
}

// owner is the request whose extent holds the byte at, or -1.
func (b *trial) owner(at int) int {
	return slices.IndexFunc(b.ops, func(op engine.Op) bool {
		s := b.a.extent(&op)
		return s.from <= at && at < s.to
	})
}

// table shows the batch, or one request of it.
func (b *trial) table(only int) string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "kind %d (0 read), order %d (0 sync), %d requests:\n", b.kind, b.order, len(b.ops))
	for i := range b.ops {
		if op := &b.ops[i]; only < 0 || i == only {
			fmt.Fprintf(&out, "%3d %-20s fd %d, %#x bytes at offset %#x, memory %#x (+%#x), result %d\n",
				i, b.to[i].name, op.FD, op.Len, op.Off, op.Addr, op.Addr-b.a.addr(0), op.Result)
		}
	}
	return out.String()
}
