package threeway

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"libphoenix/engine"
)

// TestAppendsAreWholeAndInAnyOrder writes through O_APPEND fds, where the
// kernel ignores offsets (pwrite(2), BUGS). A batch has no order, so neither
// have the pieces, but each is there once, in one piece, and its count is full.
func TestAppendsAreWholeAndInAnyOrder(t *testing.T) {
	w := newWorld(t)
	runners := append(newRunners(t), plain())
	a := newArena(t, 20<<20)
	for _, dir := range w.dirs() {
		t.Run(dir.name, func(t *testing.T) {
			to := w.file(dir.path, fileBytes, unix.O_RDWR|unix.O_APPEND)
			for made := 0; made < requests(t)/60 && !t.Failed(); {
				rapid.Check(t, func(rt *rapid.T) {
					d := drawer{a: a, kind: engine.Write}
					order := engine.Order(rapid.IntRange(0, 1).Draw(rt, "order"))
					lens := rapid.SliceOfN(rapid.IntRange(0, 9000), 1, 60).Draw(rt, "lengths")
					if rapid.IntRange(0, 9).Draw(rt, "a large one") == 0 {
						lens[0] = 9<<20 + 5 // more than a slice
					}
					for _, n := range lens {
						addr, _, _ := d.take(a.main.from+d.used, int64(n))
						off := int64(rapid.IntRange(0, 2*fileBytes).Draw(rt, "offset"))
						d.ops = append(d.ops, engine.Op{FD: to.fd, Addr: addr, Len: uint64(n), Off: off})
					}
					made += len(lens)
					for _, r := range runners {
						to.reset()
						appends(rt, a, r, order, d.ops, to)
					}
				})
			}
			to.reset()
		})
	}
}

// appends has r carry out ops, each with data that tells which op it is.
func appends(rt *rapid.T, a *arena, r runner, order engine.Order, ops []engine.Op, to *target) {
	for i := range ops {
		s := a.extent(&ops[i])
		mark(a.mem[s.from:s.to], i)
	}
	r.run(engine.Write, order, ops)
	missing := map[int]int{}
	for i := range ops {
		if ops[i].Result != int64(ops[i].Len) {
			rt.Fatalf("%s: append %d of %d bytes gave %d", r.name, i, ops[i].Len, ops[i].Result)
		}
		if ops[i].Len > 0 {
			missing[i] = int(ops[i].Len)
		}
	}
	got := readInto(nil, to.fd, 0, 12<<20)
	if !bytes.Equal(got[:fileBytes], noise(3, fileBytes)) {
		rt.Fatalf("%s: what was in the file before has changed", r.name)
	}
	for got = got[fileBytes:]; len(got) > 0; {
		i := int(got[0] - 1)
		n, ok := missing[i]
		piece := make([]byte, n)
		mark(piece, i)
		if !ok || !bytes.HasPrefix(got, piece) {
			rt.Fatalf("%s: %d bytes before the end the file has no whole piece: piece %d, %d bytes, known %t", r.name, len(got), i, n, ok)
		}
		delete(missing, i)
		got = got[n:]
	}
	if len(missing) > 0 {
		rt.Fatalf("%s: not in the file: %v (piece: bytes)", r.name, missing)
	}
}

// mark fills mem, the data of piece i: its number, then something that shows
// when parts of it change places.
func mark(mem []byte, i int) {
	for at := range mem {
		mem[at] = byte(at>>10 + at>>18 + i)
	}
	if len(mem) > 0 {
		mem[0] = byte(i + 1)
	}
}
