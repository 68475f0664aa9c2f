package threeway

import (
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// TestMisalignedLengthIsRefusedHoweverLong: with O_DIRECT a misaligned length
// is EINVAL as a whole (docs/abi.md). That must not depend on how an engine
// cuts a request, whose first slices would be aligned.
func TestMisalignedLengthIsRefusedHoweverLong(t *testing.T) {
	w := newWorld(t)
	if missing := noDirect(w.tmp); missing != nil {
		skip(t, missing)
	}
	a := newArena(t, 24<<20)
	to := w.file(w.tmp, 20<<20, unix.O_RDWR|unix.O_DIRECT)
	for _, r := range append([]runner{plain()}, newRunners(t)...) {
		for _, order := range []engine.Order{engine.Sync, engine.Async} {
			for _, n := range []uint64{1<<20 + 13, 8<<20 + 1, 17<<20 + 13} {
				ops := []engine.Op{
					{FD: to.fd, Addr: a.addr(a.main.from), Len: n},
					{FD: to.fd, Addr: a.addr(a.main.from + 20<<20), Len: 4096},
				}
				r.run(engine.Read, order, ops)
				if got := ops[0].Result; got != -int64(unix.EINVAL) {
					t.Errorf("%s, order %d: O_DIRECT read of %d bytes: %d, want %d", r.name, order, n, got, -int64(unix.EINVAL))
				}
				if got := ops[1].Result; got != 4096 {
					t.Errorf("%s, order %d: O_DIRECT read of 4096 bytes: %d", r.name, order, got)
				}
			}
		}
	}
}

// TestNeighboursSmallerThanASectorAreRefused: requests that O_DIRECT refuses one
// by one are refused, too, where several of them make a legal transfer.
func TestNeighboursSmallerThanASectorAreRefused(t *testing.T) {
	w := newWorld(t)
	if w.ns == nil {
		skip(t, w.noNS)
	}
	const sector, small = 16384, 4096
	fd, back, missing := w.loop(16*sector, unix.O_DIRECT, sector)
	if missing != nil {
		skip(t, missing)
	}
	w.own(back, nil)
	on := w.own(fd, nil)
	a := newArena(t, 1<<20)
	at := a.addr(a.main.from) // of the page size; aligned to sectors, or not, as memory need not be
	for _, r := range append([]runner{plain()}, newRunners(t)...) {
		for _, kind := range []engine.Kind{engine.Read, engine.Write} {
			ops := make([]engine.Op, 8)
			for i := range ops {
				ops[i] = engine.Op{FD: on, Addr: at + engine.HostAddr(i*small), Len: small, Off: int64(i * small)}
			}
			r.run(kind, engine.Sync, ops)
			for i := range ops {
				if got := ops[i].Result; got != -int64(unix.EINVAL) {
					t.Errorf("%s, kind %d: result %d of neighbour %d, want EINVAL", r.name, kind, got, i)
				}
			}
		}
	}
}
