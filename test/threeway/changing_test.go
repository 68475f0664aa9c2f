package threeway

import (
	"bytes"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"libphoenix/engine"
)

// A file that changes its size during a batch has no single right answer, but
// any pread gives one of these. With before and after the sizes around the
// batch, and lo <= hi the two in order:
//
//   - the count is at least what a file of lo bytes gives and at most what one
//     of hi bytes gives;
//   - the bytes below lo are the file's. Those above, which a truncation may
//     clear while they are copied, are the file's or zero; where the file only
//     grows they are the file's;
//   - memory outside the extents is as before.
func TestReadsOfAGrowingFile(t *testing.T) { changing(t, true) }

func TestReadsOfAShrinkingFile(t *testing.T) { changing(t, false) }

func changing(t *testing.T, grows bool) {
	w := newWorld(t)
	runners := append(newRunners(t), plain())
	for _, size := range []int{64 << 10, 10 << 20} {
		a := newArena(t, 2<<20+2*size)
		data := noise(13, size)
		for _, dir := range w.dirs() {
			t.Run(dir.name, func(t *testing.T) {
				to := w.file(dir.path, 0, unix.O_RDWR)
				for made := 0; made < requests(t)/(4+size>>17) && !t.Failed(); {
					rapid.Check(t, func(rt *rapid.T) {
						c := change{rt: rt, a: a, fd: int(to.fd), data: data, grows: grows}
						c.draw()
						for _, r := range runners {
							made += c.run(r)
						}
					})
				}
			})
		}
	}
}

type change struct {
	rt    *rapid.T
	a     *arena
	fd    int
	data  []byte // all that the file ever holds
	grows bool
	order engine.Order
	ops   []engine.Op
	step  int // bytes that the file changes at a time
}

func (c *change) draw() {
	size := len(c.data)
	c.order = engine.Order(rapid.IntRange(0, 1).Draw(c.rt, "order"))
	c.step = rapid.IntRange(size/64, size/8).Draw(c.rt, "step")
	d := drawer{a: c.a}
	for n := rapid.IntRange(2, 40).Draw(c.rt, "requests"); n > 0; n-- {
		length := int64(rapid.IntRange(0, size/8).Draw(c.rt, "length"))
		if n == 1 {
			length = int64(size) // sliced, if the file is large
		}
		off := int64(rapid.IntRange(0, size+size/8).Draw(c.rt, "offset"))
		addr, _, ok := d.take(c.a.main.from+d.used+64, length)
		if !ok {
			break
		}
		d.ops = append(d.ops, engine.Op{FD: int32(c.fd), Addr: addr, Len: uint64(length), Off: off})
	}
	c.ops = d.ops
}

// run changes the file step by step while r reads it, batch after batch, and
// says how many requests that were.
func (c *change) run(r runner) (made int) {
	c.start()
	var changed atomic.Bool
	begin, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(end)
		<-begin
		for at := c.step; at <= len(c.data); at += c.step {
			c.move(at)
		}
		changed.Store(true)
	}()
	close(begin)
	defer func() { <-end }()
	for last := false; !last; {
		last = changed.Load()
		before := c.size()
		c.a.reset(c.ops)
		r.run(engine.Read, c.order, c.ops)
		c.check(r, before, c.size())
		made += len(c.ops)
	}
	return made
}

func (c *change) start() {
	full := c.data
	if c.grows {
		full = nil
	}
	if err := unix.Ftruncate(c.fd, int64(len(full))); err != nil {
		c.rt.Fatal(err)
	}
	if len(full) > 0 {
		if n, err := unix.Pwrite(c.fd, full, 0); n != len(full) {
			c.rt.Fatal(n, err)
		}
	}
}

// move makes the change from one step before at, counted from where it began.
func (c *change) move(at int) {
	if c.grows {
		_, _ = unix.Pwrite(c.fd, c.data[at-c.step:at], int64(at-c.step))
		return
	}
	_ = unix.Ftruncate(c.fd, int64(len(c.data)-at))
}

func (c *change) size() int64 {
	var st unix.Stat_t
	if err := unix.Fstat(c.fd, &st); err != nil {
		c.rt.Fatal(err)
	}
	return st.Size
}

func (c *change) check(r runner, before, after int64) {
	lo, hi := min(before, after), max(before, after)
	for i := range c.ops {
		op := &c.ops[i]
		s := c.a.extent(op)
		count := func(size int64) int64 { return min(int64(op.Len), max(0, size-op.Off)) }
		if op.Result < count(lo) || op.Result > count(hi) {
			c.rt.Fatalf("%s: %d bytes at %d of a file that went from %d to %d bytes: result %d", r.name, op.Len, op.Off, before, after, op.Result)
		}
		if op.Result > 0 {
			got, want := c.a.mem[s.from:s.from+int(op.Result)], c.data[op.Off:op.Off+op.Result]
			sure := min(op.Result, count(lo))
			if c.grows {
				sure = op.Result
			}
			if !bytes.Equal(got[:sure], want[:sure]) {
				c.rt.Fatalf("%s: %d bytes at %d of a file that went from %d to %d bytes: wrong data", r.name, op.Len, op.Off, before, after)
			}
			for at := sure; at < op.Result; at++ {
				if got[at] != 0 && got[at] != want[at] {
					c.rt.Fatalf("%s: %d bytes at %d of a file that went from %d to %d bytes: byte %d is %#x", r.name, op.Len, op.Off, before, after, at, got[at])
				}
			}
		}
		c.a.ignore(s, nil)
	}
	if at := c.a.differs(c.ops, c.a.noise); at >= 0 {
		c.rt.Fatalf("%s: memory outside the requests has changed, at +%#x", r.name, at)
	}
}
