package core

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// wantTable fails unless the tree is sorted, balanced and holds want, sorted.
func wantTable(t interface{ Fatalf(string, ...any) }, table *rangeTable, want []*registration) {
	var got []*registration
	var walk func(r *registration) int8
	walk = func(r *registration) int8 {
		if r == nil {
			return 0
		}
		left := walk(r.left)
		got = append(got, r)
		right := walk(r.right)
		if d := left - right; d < -1 || d > 1 || r.height != max(left, right)+1 {
			t.Fatalf("at %#x: heights %d and %d, noted %d", r.addr, left, right, r.height)
		}
		return r.height
	}
	walk(table.root)
	if !slices.Equal(got, want) || table.n != len(want) {
		t.Fatalf("the tree holds %d ranges in this order, counts %d; want %d", len(got), table.n, len(want))
	}
}

// model is the table as a sorted slice.
type model []*registration

func (m model) floor(addr DevAddr) (best *registration) {
	for _, r := range m {
		if r.addr <= addr {
			best = r
		}
	}
	return best
}

func (m model) overlaps(addr DevAddr, n uint64) (out []*registration) {
	for _, r := range m {
		if uint64(r.addr) <= uint64(addr)+(n-1) && uint64(addr) <= uint64(r.addr)+(r.lenBytes-1) {
			out = append(out, r)
		}
	}
	return out
}

func TestTableAgreesWithANaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table rangeTable
		var naive model
		addr := rapid.OneOf(
			rapid.Map(rapid.Uint64Range(0, 60), func(v uint64) uint64 { return v * 8 }),
			rapid.Map(rapid.Uint64Range(0, 60), func(v uint64) uint64 { return ^uint64(0) - v*8 }),
		)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			a := DevAddr(addr.Draw(t, "addr"))
			n := rapid.Uint64Range(1, 40).Draw(t, "len")
			if uint64(a) > ^uint64(0)-n {
				n = 1
			}
			if got, want := table.floor(a), naive.floor(a); got != want {
				t.Fatalf("floor(%#x) = %v, want %v", a, got, want)
			}
			var lowest *registration
			if len(naive) > 0 {
				lowest = naive[0]
			}
			if table.first() != lowest {
				t.Fatalf("first() = %v, want %v", table.first(), lowest)
			}
			over := naive.overlaps(a, n)
			got := table.overlapping(a, n)
			if (got == nil) != (len(over) == 0) || (got != nil && !slices.Contains(over, got)) {
				t.Fatalf("overlapping(%#x, %d) = %v, want one of %v", a, n, got, over)
			}
			switch {
			case got == nil:
				r := &registration{addr: a, lenBytes: n}
				table.insert(r)
				naive = append(naive, r)
				slices.SortFunc(naive, func(x, y *registration) int {
					if x.addr < y.addr {
						return -1
					}
					return 1
				})
			case rapid.Bool().Draw(t, "remove"):
				table.remove(got)
				naive = slices.DeleteFunc(naive, func(r *registration) bool { return r == got })
			}
			wantTable(t, &table, naive)
		}
	})
}

func TestTableOfTenThousandRangesStaysBalancedInAnyOrder(t *testing.T) {
	const n = 10_000
	orders := map[string]func(i int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return n - 1 - i },
		"from both":  func(i int) int { return i/2 + (i%2)*(n-1-2*(i/2)) },
		"shuffled":   func(i int) int { return i * 7919 % n },
	}
	for name, order := range orders {
		var table rangeTable
		all := make([]*registration, n)
		for i := range n {
			at := order(i)
			all[at] = &registration{addr: DevAddr(1+at) * 2 * page, lenBytes: page}
			if table.overlapping(all[at].addr, page) != nil {
				t.Fatalf("%s: %d is there already", name, at)
			}
			table.insert(all[at])
		}
		wantTable(t, &table, all)
		if limit := int8(3 * bits.Len(n) / 2); table.root.height > limit {
			t.Fatalf("%s: height %d, want at most %d", name, table.root.height, limit)
		}
		for i, r := range all {
			if got := table.floor(r.addr + page - 1); got != r {
				t.Fatalf("%s: floor inside range %d = %v", name, i, got)
			}
			if got := table.floor(r.addr + 2*page - 1); got != r {
				t.Fatalf("%s: floor behind range %d = %v", name, i, got)
			}
		}
		left := slices.Clone(all)
		rng := rand.New(rand.NewPCG(3, 4))
		rng.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		for i, r := range all[:n-1] {
			table.remove(r)
			if i%1000 == 0 {
				left = slices.DeleteFunc(left, func(x *registration) bool { return slices.Contains(all[:i+1], x) })
				wantTable(t, &table, left)
			}
		}
		table.remove(table.first())
		wantTable(t, &table, nil)
	}
}

func TestRemovingWhatIsNotThereIsABug(t *testing.T) {
	var table rangeTable
	table.insert(&registration{addr: page, lenBytes: page})
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	table.remove(&registration{addr: 2 * page, lenBytes: page})
}
