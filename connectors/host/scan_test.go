package host

import (
	"fmt"
	"strings"
	"testing"
)

// maps is a file of adjacent, read-only, separate and very long lines.
var maps = strings.Join([]string{
	"10000-20000 rw-p 00000000 00:00 0 ",
	"20000-30000 rw-s 00000000 08:01 77                         /dev/shm/a file with rw-p in its name",
	"30000-38000 r--p 00000000 08:01 77                         /lib/x.so",
	"38000-40000 -w-p 00000000 00:00 0 ",
	"50000-60000 rw-p 00000000 00:00 0                          /" + strings.Repeat("long/", 900),
	"60000-70000 rw-p 00000000 00:00 0                          [heap]",
	"7fffaaaa0000-7fffaaab0000 rw-p 00000000 00:00 0            [stack]",
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]",
}, "\n") + "\n"

// judge feeds the file in pieces of at most chunk bytes.
func judge(addr, n uint64, chunk int) (verdict, uint64) {
	s := scan{want: addr, end: addr + n}
	for rest := maps; rest != "" && s.verdict == undecided; {
		k := min(chunk, len(rest))
		s.feed([]byte(rest[:k]))
		rest = rest[k:]
	}
	if s.verdict == undecided {
		s.verdict = hole
	}
	return s.verdict, s.want
}

func TestVerdictDoesNotDependOnWhereReadsEnd(t *testing.T) {
	cases := []struct {
		addr, n uint64
		want    verdict
		first   uint64 // first byte that is not good
	}{
		{0x10000, 0x10000, covered, 0x20000},
		{0x10001, 1, covered, 0x10002},
		{0x1ffff, 2, covered, 0x20001},        // across a border
		{0x10000, 0x20000, covered, 0x30000},  // two whole mappings
		{0x10000, 0x20001, readOnly, 0x30000}, // one byte too many
		{0x34000, 0x1000, readOnly, 0x34000},  // starts in read-only memory
		{0x38000, 0x8000, covered, 0x40000},   // write-only counts as writable
		{0x38000, 0x8001, hole, 0x40000},      // runs into a hole
		{0x40000, 1, hole, 0x40000},           // in a hole
		{0x4ffff, 2, hole, 0x4ffff},           // starts one byte too early
		{0x50000, 0x20000, covered, 0x70000},  // across a line longer than any buffer
		{0xfff, 1, hole, 0xfff},               // below everything
		{0x7fffaaaa0000, 0x10000, covered, 0x7fffaaab0000},
		{0x7fffaaab0000, 1, hole, 0x7fffaaab0000}, // between the last two
		{0xffffffffff600000, 0x1000, readOnly, 0xffffffffff600000},
		{0xffffffffff601000, 0x1000, hole, 0xffffffffff601000}, // above everything
	}
	for _, c := range cases {
		for _, chunk := range []int{1, 2, 3, 7, 35, 36, 37, 64, 4096, 1 << 20} {
			got, first := judge(c.addr, c.n, chunk)
			if got != c.want || first != c.first {
				t.Errorf("[%#x, +%#x) in pieces of %d: verdict %d at %#x, want %d at %#x", c.addr, c.n, chunk, got, first, c.want, c.first)
			}
		}
	}
}

// FuzzScan: the verdict on any range equals that of a page-by-page search of
// the same mappings, wherever the reads end.
func FuzzScan(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, uint16(1), uint16(2), uint8(5))
	f.Fuzz(func(t *testing.T, pages []byte, at, n uint16, chunk uint8) {
		if len(pages) > 64 || n == 0 || chunk == 0 {
			return
		}
		// Page i is a hole, read-only or writable; a set bit 2 starts a new line.
		kind := func(i uint64) byte {
			if i >= uint64(len(pages)) {
				return 0
			}
			return pages[i] % 3
		}
		var text strings.Builder
		for i := 0; i < len(pages); {
			j := i + 1
			for j < len(pages) && kind(uint64(j)) == kind(uint64(i)) && pages[j]&4 == 0 {
				j++
			}
			if k := kind(uint64(i)); k != 0 {
				fmt.Fprintf(&text, "%x-%x r%cxp 00000000 00:00 0 w\n", i<<12, j<<12, "--w"[k])
			}
			i = j
		}
		addr, lenBytes := uint64(at), uint64(n)
		want, first := covered, addr+lenBytes
		for a := addr; a < addr+lenBytes; a = (a>>12 + 1) << 12 {
			if k := kind(a >> 12); k != 2 {
				want, first = hole, a
				if k == 1 {
					want = readOnly
				}
				break
			}
		}
		s := scan{want: addr, end: addr + lenBytes}
		for rest := []byte(text.String()); len(rest) > 0 && s.verdict == undecided; {
			k := min(int(chunk), len(rest))
			s.feed(rest[:k])
			rest = rest[k:]
		}
		if s.verdict == undecided {
			s.verdict = hole
		}
		if s.verdict != want || s.want != first {
			t.Fatalf("[%#x, +%#x) in pieces of %d: verdict %d at %#x, want %d at %#x\n%s", addr, lenBytes, chunk, s.verdict, s.want, want, first, &text)
		}
	})
}
