package core

import (
	"math"
	"math/big"
	"testing"
)

func big64(v uint64) *big.Int { return new(big.Int).SetUint64(v) }

// FuzzResolveArithmetic: the address is base + offset in exact arithmetic and the whole extent lies inside its bounds, or it is refused; never both, never neither.
func FuzzResolveArithmetic(f *testing.F) {
	for _, s := range []struct {
		base, length, host, at uint64
		off                    int64
		n                      uint64
		file                   int64
	}{
		{page, page, 1 << 40, 0, 0, page, 0},
		{page, page, 1 << 40, page - 1, 1, 0, math.MaxInt64},
		{page, page, 1 << 40, page - 1, 2, 0, 1},
		{math.MaxUint64 - page, page, 1 << 40, 5, math.MaxInt64, math.MaxUint64, -1},
		{0, math.MaxUint64, 0, math.MaxUint64 - 1, 1, 1, math.MaxInt64},
		{page, page, 1 << 40, 0, 1, math.MaxUint64, 1},
		{page, page, 1 << 40, 0, 2, math.MaxUint64 - 1, 2},
		{1 << 63, 1 << 62, 1 << 46, 1 << 61, -1, 1 << 63, math.MinInt64},
	} {
		f.Add(s.base, s.length, s.host, s.at, s.off, s.n, s.file)
	}
	f.Fuzz(func(t *testing.T, base, length, host, at uint64, off int64, n uint64, file int64) {
		// File range.
		end := new(big.Int).Add(big.NewInt(file), big64(n))
		fits := file >= 0 && end.Cmp(big.NewInt(math.MaxInt64)) <= 0
		if why := fileRange(file, n); (why == 0) != fits {
			t.Fatalf("fileRange(%d, %d) = %d, want fit %v", file, n, why, fits)
		}

		// CPU buffer: buf = base.
		start := new(big.Int).Add(big64(base), big.NewInt(off))
		end = new(big.Int).Add(start, big64(n))
		fits = off >= 0 && end.Cmp(big64(math.MaxUint64)) <= 0
		addr, ok := cpuExtent(DevAddr(base), off, n)
		if ok != fits || (ok && big64(uint64(addr)).Cmp(start) != 0) {
			t.Fatalf("cpuExtent(%#x, %d, %d) = %#x, %v; want %v, %v", base, off, n, addr, ok, start, fits)
		}

		// Device buffer: neither range wraps (regmem and the kernel see to that).
		length = min(length, math.MaxUint64-base, math.MaxUint64-host)
		r := &registration{addr: DevAddr(base), lenBytes: length, host: HostAddr(host)}
		buf := DevAddr(base + at)
		inside := buf >= DevAddr(base) && big64(uint64(buf)).Cmp(new(big.Int).Add(big64(base), big64(length))) < 0
		if r.holds(buf) != inside {
			t.Fatalf("range %#x+%#x holds %#x: %v, want %v", base, length, buf, !inside, inside)
		}
		if !inside {
			return
		}
		in := new(big.Int).Add(big64(uint64(buf)-base), big.NewInt(off)) // from the start of the range
		end = new(big.Int).Add(in, big64(n))
		fits = off >= 0 && end.Cmp(big64(length)) <= 0
		got, why := r.extent(buf, off, n)
		if (why == 0) != fits {
			t.Fatalf("extent(%#x, %d, %d) in %#x+%#x: reason %d, want fit %v", buf, off, n, base, length, why, fits)
		}
		if fits && big64(uint64(got)).Cmp(new(big.Int).Add(big64(host), in)) != 0 {
			t.Fatalf("extent = %#x, want %#x + %v", got, host, in)
		}
	})
}
