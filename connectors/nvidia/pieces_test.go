package nvidia

import (
	"testing"
	"unsafe"

	"libphoenix/connectors"
	"libphoenix/connectors/connectorstest"
	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
)

// chunks is a stand-in libcuda with eight chunks of 2 MiB at 0x10000000, as if
// cuMemMap had put them there. ids[i] is the buffer id of the i-th; 0: unmapped.
const chunks = `
unsigned long long ids[8];
int questions;
int cuPointerGetAttribute(void *data, int attribute, unsigned long long addr) {
	unsigned long long i = (addr - 0x10000000) >> 21;
	questions++;
	if (attribute != 7) return 801;
	if (addr < 0x10000000 || i >= 8 || !ids[i]) return 1;
	*(unsigned long long *)data = ids[i];
	return 0;
}
struct access { unsigned long long *ids; int *questions; };
int give(struct access *to) { to->ids = ids, to->questions = &questions; return 0; }
`

const mib = 1 << 20

// withChunks gives the test, which is alone in its process, that libcuda.
func withChunks(t *testing.T) (ids *[8]uint64, questions *int32) {
	t.Helper()
	lib, err := dl.Open(dltest.Build(t, t.TempDir(), "libcuda.so.1", chunks))
	if err != nil {
		t.Fatal(err)
	}
	give, err := lib.Symbol("give")
	if err != nil {
		t.Fatal(err)
	}
	var to struct {
		ids       *[8]uint64
		questions *int32
	}
	give.CallP(unsafe.Pointer(&to))
	return to.ids, to.questions
}

func TestIdentityIsThatOfEveryPieceOfTheRange(t *testing.T) {
	if !connectorstest.Alone(t) {
		return
	}
	ids, _ := withChunks(t)
	c := New(Config{})
	for i := range ids {
		ids[i] = 100 + uint64(i)
	}
	for _, r := range []struct {
		name     string
		addr     connectors.DevAddr
		lenBytes uint64
		in       [2]int // pieces from, up to
	}{
		{"one whole piece", 0x10000000, 2 * mib, [2]int{0, 1}},
		{"a part of one", 0x10000000 + 3*mib, mib, [2]int{1, 2}},
		{"64 KiB on both sides of a border", 0x10000000 + 2*mib - 65536, 131072, [2]int{0, 2}},
		{"up to 64 KiB before the last border", 0x10000000, 6*mib - 65536, [2]int{0, 3}},
		{"one byte behind a border", 0x10000000, 6*mib + 1, [2]int{0, 4}},
		{"from the middle of a piece to the middle of one", 0x10000000 + 65536, 6 * mib, [2]int{0, 4}},
		{"all", 0x10000000, 16 * mib, [2]int{0, 8}},
	} {
		before, state := c.Identity(r.addr, r.lenBytes)
		if state != connectors.LifeKnown {
			t.Fatalf("%s: state %d", r.name, state)
		}
		for i := range ids {
			own, inside := ids[i], i >= r.in[0] && i < r.in[1]
			for _, now := range []struct {
				what string
				id   uint64
				want connectors.LifeState
			}{{"nothing", 0, connectors.LifeGone}, {"another allocation", 200, connectors.LifeKnown}, {"the neighbour's", ids[i^1], connectors.LifeKnown}} {
				ids[i] = now.id
				id, state := c.Identity(r.addr, r.lenBytes)
				switch {
				case !inside && (id != before || state != connectors.LifeKnown):
					t.Errorf("%s, piece %d outside it has %s: identity %#x, state %d; want %#x as before", r.name, i, now.what, id, state, before)
				case inside && (state != now.want || id == before):
					t.Errorf("%s, piece %d has %s: identity %#x (before %#x), state %d, want %d", r.name, i, now.what, id, before, state, now.want)
				}
				ids[i] = own
			}
		}
		if id, state := c.Identity(r.addr, r.lenBytes); id != before || state != connectors.LifeKnown {
			t.Errorf("%s, as in the beginning: identity %#x, state %d; want %#x", r.name, id, state, before)
		}
	}
}

// Which piece is whose counts: a value of the ids alone, or of those that differ
// from their neighbours, would not tell.
func TestIdentityTellsTheOrderOfPieces(t *testing.T) {
	if !connectorstest.Alone(t) {
		return
	}
	ids, _ := withChunks(t)
	c := New(Config{})
	seen := map[uint64][3]uint64{}
	for n := range 27 {
		now := [3]uint64{uint64(n%3) + 1, uint64(n/3%3) + 1, uint64(n/9) + 1}
		copy(ids[:], now[:])
		id, state := c.Identity(0x10000000, 6*mib)
		if before, known := seen[id]; known || state != connectors.LifeKnown {
			t.Errorf("pieces %v: state %d, identity %#x, which is that of %v", now, state, id, before)
		}
		seen[id] = now
	}
}

func TestOneQuestionForEachPieceUpToTheFirstRefusal(t *testing.T) {
	if !connectorstest.Alone(t) {
		return
	}
	ids, questions := withChunks(t)
	c := New(Config{})
	for i := range ids {
		ids[i] = 7
	}
	for _, r := range []struct {
		lenBytes uint64
		want     int32
	}{{65536, 1}, {2 * mib, 1}, {2*mib + 1, 2}, {16 * mib, 8}, {1 << 40, 9}} {
		*questions = 0
		if c.Identity(0x10000000, r.lenBytes); *questions != r.want {
			t.Errorf("%d bytes: %d questions, want %d", r.lenBytes, *questions, r.want)
		}
	}
	if got := testing.AllocsPerRun(100, func() { c.Identity(0x10000000, 16*mib) }); got != 0 {
		t.Errorf("%v allocations per answer, want 0", got)
	}
}
