package threeway

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// arena is the memory of requests, amid a reservation so large that no request
// reaches anything else of the process:
//
//	nothing | main | nothing | cliff, its bad part, cliff, its bad part, ... | abyss | nothing
//
// main is for usual requests. A cliff is writable memory before a bad part
// that is unmapped or read-only, the abyss is the last of them, with many GiB
// of nothing below it. All but the bad parts begins with known noise, so a
// byte written at a wrong place shows.
type arena struct {
	mem  []byte // the reservation
	main span
	// cliffs[i] is followed by the bad part bad[i].
	cliffs, bad []span
	abyss       span

	noise []byte // what each live byte of mem begins with, see at
	want  []byte // what the plain loop made of it
	high  int    // end of what any ops reached in main
}

// span is a part of arena.mem, in bytes from its start.
type span struct{ from, to int }

const (
	reserveBytes = 16 << 30
	belowBytes   = 1 << 30 // before main: more than one chunk of a request
	cliffBytes   = 32 << 10
	cliffs       = 8
)

func newArena(t *testing.T, mainBytes int) *arena {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, reserveBytes, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatalf("reserving %d bytes of addresses: %v", reserveBytes, err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	a := &arena{mem: mem, main: span{belowBytes, belowBytes + mainBytes}}
	at := a.main.to + cliffBytes
	next := func() span { s := span{at, at + cliffBytes}; at = s.to; return s }
	for range cliffs {
		a.cliffs = append(a.cliffs, next())
		a.bad = append(a.bad, next())
	}
	a.abyss = next()
	a.noise, a.want = noise(1, at-belowBytes), make([]byte, at-belowBytes)
	for _, s := range a.live() {
		a.protect(t, s, unix.PROT_READ|unix.PROT_WRITE)
		copy(a.mem[s.from:s.to], a.at(a.noise, s))
	}
	for i := 1; i < cliffs; i += 2 {
		a.protect(t, a.bad[i], unix.PROT_READ)
	}
	return a
}

func (a *arena) protect(t *testing.T, s span, prot int) {
	t.Helper()
	if err := unix.Mprotect(a.mem[s.from:s.to], prot); err != nil {
		t.Fatalf("mprotect: %v", err)
	}
}

// live is the writable memory.
func (a *arena) live() []span {
	return append([]span{a.main, a.abyss}, a.cliffs...)
}

// at is the part of one of the arena's copies, noise or want, that belongs to s.
func (a *arena) at(copied []byte, s span) []byte {
	return copied[s.from-belowBytes : s.to-belowBytes]
}

func (a *arena) addr(at int) engine.HostAddr {
	return engine.HostAddr(uintptr(unsafe.Pointer(unsafe.SliceData(a.mem)))) + engine.HostAddr(at)
}

// parts calls f for the live parts, of main only what ops reach and a bit.
func (a *arena) parts(ops []engine.Op, f func(span)) {
	used := a.main
	used.to = used.from + 4096
	for i := range ops {
		if s := a.extent(&ops[i]); s.from < a.main.to {
			used.to = max(used.to, min(s.to+4096, a.main.to))
		}
	}
	a.high = max(a.high, used.to)
	for _, s := range append(a.live()[1:], used) {
		f(s)
	}
}

// untouched reports whether main is as ever where no request went.
func (a *arena) untouched() bool {
	s := span{max(a.high, a.main.from), a.main.to}
	return bytes.Equal(a.mem[s.from:s.to], a.at(a.noise, s))
}

// extent is the part of the reservation that op means; empty for addresses
// outside.
func (a *arena) extent(op *engine.Op) span {
	from := uint64(op.Addr - a.addr(0))
	if op.Addr < a.addr(0) || from >= reserveBytes {
		return span{}
	}
	return span{int(from), int(from + min(op.Len, reserveBytes-from))}
}

func (a *arena) reset(ops []engine.Op) {
	a.parts(ops, func(s span) { copy(a.mem[s.from:s.to], a.at(a.noise, s)) })
}

// keep notes what the plain loop left.
func (a *arena) keep(ops []engine.Op) {
	a.parts(ops, func(s span) { copy(a.at(a.want, s), a.mem[s.from:s.to]) })
}

// ignore makes s equal to what it was at first, in memory and, for copied that
// is not nil, there: for what is unspecified.
func (a *arena) ignore(s span, copied []byte) {
	for _, l := range a.live() {
		if c := (span{max(s.from, l.from), min(s.to, l.to)}); c.from < c.to {
			copy(a.mem[c.from:c.to], a.at(a.noise, c))
			if copied != nil {
				copy(a.at(copied, c), a.at(a.noise, c))
			}
		}
	}
}

// differs is the first live byte that is not as in copied, or -1.
func (a *arena) differs(ops []engine.Op, copied []byte) int {
	found := -1
	a.parts(ops, func(s span) {
		if found < 0 && !bytes.Equal(a.mem[s.from:s.to], a.at(copied, s)) {
			for found = s.from; a.mem[found] == copied[found-belowBytes]; found++ {
			}
		}
	})
	return found
}

// noise is random data that a seed repeats.
func noise(seed uint64, lenBytes int) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	data := make([]byte, lenBytes)
	_, _ = rand.NewChaCha8(key).Read(data)
	return data
}
