package engine

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ways are how a batch can be carried out.
var ways = map[string]func(e Engine, b *Batch, k Kind, ops []Op, s Stager){
	"sync":      func(e Engine, b *Batch, k Kind, ops []Op, s Stager) { runAs(e, Sync, b, k, ops, s) },
	"unordered": func(e Engine, b *Batch, k Kind, ops []Op, s Stager) { runAs(e, Unordered, b, k, ops, s) },
	"async": func(e Engine, b *Batch, k Kind, ops []Op, s Stager) {
		e.Begin(b, Async)
		b.Ops, b.Kind, b.Stager = ops, k, s
		if err := e.Submit(b); err != nil {
			panic(err)
		}
		e.Wait(b)
	},
}

func runAs(e Engine, o Order, b *Batch, k Kind, ops []Op, s Stager) {
	e.Begin(b, o)
	b.Ops, b.Kind, b.Stager = ops, k, s
	e.Run(b)
}

func TestStagedTransfersAreThoseOfPlainOnes(t *testing.T) {
	const size = 6<<20 + 777
	for name, do := range ways {
		for _, slots := range []int{1, 3, 32} {
			t.Run(name, func(t *testing.T) {
				e := NewSync(Config{Helpers: 3})
				defer e.Close()
				s := newFakeStager(t, slots)
				f, data := stageFile(t, size, 0)
				mem, at := foreignMemory(t, 16<<20)
				ops := []Op{
					{FD: int32(f.Fd()), Addr: at + 5, Len: size, Off: 0, Group: 7},                       // in slices
					{FD: int32(f.Fd()), Addr: at + 8<<20, Len: 3000, Off: 100, Group: 7},                 // small
					{FD: int32(f.Fd()), Addr: at + 9<<20, Len: 2 << 20, Off: size - 1<<20 - 5, Group: 8}, // the file ends in it
					{FD: int32(f.Fd()), Addr: at + 12<<20, Len: 4096, Off: 1 << 40, Group: 8},            // beyond the end
					{FD: -1, Addr: at + 12<<20, Len: 4096, Off: 0, Group: 8},                             // no file
					{FD: int32(f.Fd()), Addr: at + 13<<20, Len: 1<<20 + 1, Off: 17},                      // a CPU buffer
					{FD: -1, Addr: at, Len: 0, Off: 0, Group: 9},                                         // nothing
					{FD: int32(f.Fd()), Addr: at + 15<<20, Len: 1 << 20, Off: size - 1<<20, Group: 9},    // exactly a slot
				}
				var b Batch
				do(e, &b, Read, ops, s)
				want := []int64{size, 3000, 1<<20 + 5, 0, -int64(syscall.EBADF), 1<<20 + 1, 0, 1 << 20}
				for i := range ops {
					if ops[i].Result != want[i] {
						t.Errorf("read %d: %d, want %d", i, ops[i].Result, want[i])
					}
					if n := max(want[i], 0); n > 0 && i != 3 {
						place := int(ops[i].Addr - at)
						if !bytes.Equal(mem[place:place+int(n)], data[ops[i].Off:ops[i].Off+n]) {
							t.Errorf("read %d: wrong bytes", i)
						}
					}
				}
				do(e, &b, Write, []Op{{FD: int32(f.Fd()), Addr: at + 11, Len: size, Off: 4321, Group: 1}}, s)
				if got := b.Ops[0].Result; got != size {
					t.Fatalf("write: %d, want %d", got, size)
				}
				back := make([]byte, size)
				if _, err := f.ReadAt(back, 4321); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(back, mem[11:11+size]) {
					t.Error("write: wrong bytes")
				}
			})
		}
	}
}

func TestFailedCopyStopsItsOpThere(t *testing.T) {
	e := NewSync(Config{Helpers: 1})
	defer e.Close()
	f, _ := stageFile(t, 4<<20, 0)
	_, at := foreignMemory(t, 4<<20)
	for _, k := range []Kind{Read, Write} {
		s := newFakeStager(t, 8)
		s.fail = func(int64) syscall.Errno { return syscall.ENODEV }
		var b Batch
		runAs(e, Sync, &b, k, []Op{{FD: int32(f.Fd()), Addr: at, Len: 4 << 20, Group: 1}, {FD: int32(f.Fd()), Addr: at, Len: 100, Group: 1}}, s)
		for i := range b.Ops {
			if got := b.Ops[i].Result; got != -int64(syscall.ENODEV) {
				t.Errorf("kind %d op %d: %d, want -ENODEV", k, i, got)
			}
		}
	}
	s := newFakeStager(t, 1) // one slot: copies are made in the order of the slices
	s.fail = func(n int64) syscall.Errno {
		if n == 3 {
			return syscall.EIO
		}
		return 0
	}
	var b Batch
	runAs(e, Sync, &b, Read, []Op{{FD: int32(f.Fd()), Addr: at, Len: 4 << 20, Group: 1}}, s)
	if got := b.Ops[0].Result; got < 0 || got >= 4<<20 || got%StageBytes != 0 {
		t.Errorf("third copy failed: %d, want whole pieces, fewer than four", got)
	}
}

func TestNoSlotIsTheOpsError(t *testing.T) {
	e := NewSync(Config{Helpers: 1})
	defer e.Close()
	f, _ := stageFile(t, 4096, 0)
	_, at := foreignMemory(t, 4096)
	s := newFakeStager(t, 1)
	s.empty = syscall.ENOMEM
	var b Batch
	runAs(e, Unordered, &b, Read, []Op{{FD: int32(f.Fd()), Addr: at, Len: 4096, Group: 1}}, s)
	if got := b.Ops[0].Result; got != -int64(syscall.ENOMEM) {
		t.Errorf("got %d, want -ENOMEM", got)
	}
}

// panicIO panics in some of its calls.
type panicIO struct {
	kernelIO
	every int64
	calls atomic.Int64
}

func (p *panicIO) Pread(fd int32, addr HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	if p.calls.Add(1)%p.every == 0 {
		panic("of the test")
	}
	return p.kernelIO.Pread(fd, addr, n, off)
}

func (p *panicIO) Pwrite(fd int32, addr HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	if p.calls.Add(1)%p.every == 0 {
		panic("of the test")
	}
	return p.kernelIO.Pwrite(fd, addr, n, off)
}

func TestPanicCostsOnlyWhatWasClaimed(t *testing.T) {
	e := NewSync(Config{Helpers: 2, IO: &panicIO{every: 7}})
	defer e.Close()
	f, _ := stageFile(t, 1<<20, 0)
	_, at := foreignMemory(t, 1<<20)
	for _, k := range []Kind{Read, Write} {
		s := newFakeStager(t, 5) // its end sees that every slot came back
		ops := make([]Op, 200)
		for i := range ops {
			ops[i] = Op{FD: int32(f.Fd()), Addr: at + HostAddr(i*4096), Len: 4096, Off: int64(i * 4096), Group: 1}
		}
		var b Batch
		runAs(e, Sync, &b, k, ops, s)
		good := 0
		for i := range ops {
			switch ops[i].Result {
			case 4096:
				good++
			case -int64(syscall.EIO):
			default:
				t.Fatalf("kind %d op %d: %d", k, i, ops[i].Result)
			}
		}
		if good == 0 || good == len(ops) {
			t.Errorf("kind %d: %d of %d succeeded", k, good, len(ops))
		}
	}
}

// O_APPEND puts the parts of a write one behind the other: it is not cut.
func TestStagedAppendKeepsTheOrder(t *testing.T) {
	e := NewSync(Config{Helpers: 3})
	defer e.Close()
	f, _ := stageFile(t, 0, os.O_APPEND)
	mem, at := foreignMemory(t, 5<<20)
	for i := range mem {
		mem[i] = byte(i >> 12)
	}
	var b Batch
	runAs(e, Sync, &b, Write, []Op{{FD: int32(f.Fd()), Addr: at, Len: uint64(len(mem)), Group: 1}}, newFakeStager(t, 8))
	if got := b.Ops[0].Result; got != int64(len(mem)) {
		t.Fatalf("%d bytes", got)
	}
	back, err := os.ReadFile(f.Name())
	if err != nil || !bytes.Equal(back, mem) {
		t.Errorf("wrong bytes in the file (%v)", err)
	}
}

// A length that O_DIRECT refuses is refused as a whole, as by one pread.
func TestStagedLengthThatDirectIORefuses(t *testing.T) {
	e := NewSync(Config{Helpers: 1})
	defer e.Close()
	f, _ := stageFile(t, 4<<20, syscall.O_DIRECT)
	_, at := foreignMemory(t, 4<<20)
	for _, n := range []uint64{100, 2<<20 + 100} {
		_, want := unix.Pread(int(f.Fd()), foreign(at, n), 0)
		var b Batch
		runAs(e, Sync, &b, Read, []Op{{FD: int32(f.Fd()), Addr: at, Len: n, Group: 1}}, newFakeStager(t, 2))
		got := b.Ops[0].Result
		if errno, ok := want.(syscall.Errno); ok && got != -int64(errno) || want == nil && got != int64(n) {
			t.Errorf("%d bytes: %d, pread says %v", n, got, want)
		}
	}
}

// Threads that need more slots than there are take turns and none starves.
func TestManyThreadsShareFewSlots(t *testing.T) {
	e := NewSync(Config{Helpers: 4})
	defer e.Close()
	s := newFakeStager(t, 2)
	f, data := stageFile(t, 3<<20, 0)
	var group sync.WaitGroup
	for i := range 12 {
		mem, at := foreignMemory(t, 3<<20)
		group.Go(func() {
			var b Batch
			for range 5 {
				runAs(e, Order([]Order{Sync, Unordered}[i%2]), &b, Read, []Op{{FD: int32(f.Fd()), Addr: at, Len: 3 << 20, Group: uint32(i + 1)}}, s)
				if b.Ops[0].Result != 3<<20 || !bytes.Equal(mem, data) {
					t.Errorf("thread %d: %d", i, b.Ops[0].Result)
				}
			}
		})
	}
	group.Wait()
}

// An unordered batch passes async ones that stand.
func TestUnorderedBatchesTakeNoTurn(t *testing.T) {
	e := NewSync(Config{Helpers: 1})
	defer e.Close()
	f, _ := stageFile(t, 4096, 0)
	_, at := foreignMemory(t, 4096)
	s := newFakeStager(t, 2)
	var first, b Batch
	e.Begin(&first, Async) // not submitted: all later tickets wait
	runAs(e, Unordered, &b, Read, []Op{{FD: int32(f.Fd()), Addr: at, Len: 4096, Group: 1}}, s)
	if b.Ops[0].Result != 4096 {
		t.Errorf("%d bytes", b.Ops[0].Result)
	}
	e.Begin(&b, Unordered)
	e.Abandon(&b)
	e.Abandon(&first)
}

// meetingIO lets no read go before n threads read at once.
type meetingIO struct {
	kernelIO
	left atomic.Int64
	met  chan struct{}
}

func (m *meetingIO) Pread(fd int32, addr HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	if m.left.Add(-1) == 0 {
		close(m.met)
	}
	<-m.met
	return m.kernelIO.Pread(fd, addr, n, off)
}

// Staged reads have helpers of their own, beside those of other batches.
func TestStagedReadsHaveMoreHelpers(t *testing.T) {
	for _, c := range [][4]int{ // asked for, cores, helpers, helpers for staged reads
		{0, 1, 1, 1}, {0, 2, 1, 1}, {0, 4, 3, 3}, {0, 8, 4, 7}, {0, 64, 4, 10}, {3, 64, 3, 3}, {99, 1, 64, 64},
	} {
		if size, wide := helpersFor(c[0], func() int { return c[1] }); size != c[2] || wide != c[3] {
			t.Errorf("%d asked for, %d cores: %d and %d, want %d and %d", c[0], c[1], size, wide, c[2], c[3])
		}
	}
	const threads = 6 // the caller's among them
	io := &meetingIO{met: make(chan struct{})}
	io.left.Store(threads)
	m := NewSync(Config{Helpers: 1, IO: io}).(*machine)
	defer m.Close()
	m.wide = threads - 1
	f, data := stageFile(t, threads<<20, 0)
	mem, at := foreignMemory(t, threads<<20)
	for _, way := range []string{"sync", "async"} {
		var b Batch
		ways[way](m, &b, Read, []Op{{FD: int32(f.Fd()), Addr: at, Len: threads << 20, Group: 1}}, newFakeStager(t, threads))
		if b.Ops[0].Result != threads<<20 || !bytes.Equal(mem, data) {
			t.Errorf("%s: %d", way, b.Ops[0].Result)
		}
		clear(mem)
	}
	b := Batch{Stager: newFakeStager(t, 1), Kind: Write}
	if got := m.helpers(&b); got != 1 {
		t.Errorf("%d helpers for writes, which wait for each other in the file", got)
	}
}

func TestStagedSlices(t *testing.T) {
	b := Batch{Stager: new(fakeStager)}
	for _, c := range []struct {
		n      uint64
		slices int32
		size   uint64
	}{
		{StageBytes, 1, 0},
		{StageBytes + 1, 2, StageBytes},
		{sliceBytes, 8, StageBytes},
		{sliceBytes + 1, 9, StageBytes},
		{1 << 40, 1 << 20, StageBytes},
	} {
		b.Ops = []Op{{Len: c.n, Group: 1}, {Len: c.n}}
		b.prepare()
		op, plain := &b.Ops[0], &b.Ops[1]
		if op.slices != c.slices || c.slices > 1 && op.sliceSize() != c.size {
			t.Errorf("%d bytes: %d slices of %d", c.n, op.slices, op.sliceSize())
		}
		if c.n > sliceBytes && plain.sliceSize() != sliceBytes {
			t.Errorf("%d bytes, not staged: slices of %d", c.n, plain.sliceSize())
		}
		total := uint64(0)
		for i := range op.slices {
			_, n := op.extent(uint32(i))
			total += n
		}
		if total != c.n {
			t.Errorf("%d bytes: the slices have %d", c.n, total)
		}
	}
}
