package statemachine

import (
	"fmt"
	"math"
	"slices"
	"syscall"

	"pgregory.net/rapid"

	"libphoenix/core"
	"libphoenix/engine"
)

// What machine calls: transfers and batches.

const untouched = -77777 // a result that nobody writes

// drawRequest is a transfer at the edges of things.
func (s *machine) drawRequest(t *rapid.T, fd int32) core.Request {
	q := core.Request{FD: fd, Device: int32(drawDevice(t)), Result: untouched}
	addr, n := s.drawRange(t, int(q.Device))
	if q.Device < 0 {
		addr = cpuBase
	}
	edges := rapid.SampledFrom([]int64{0, 0, 1, 100, 300, 512, page, int64(n) - 1, int64(n), int64(n) + 1, -1})
	in := edges.Draw(t, "in")
	split := rapid.SampledFrom([]int64{0, 0, in / 2, in}).Draw(t, "through the offset")
	if in < 0 {
		in, split = 0, -1
	}
	q.Buf, q.BufOffset = addr+core.DevAddr(in-max(split, 0)), split
	q.Len = uint64(rapid.SampledFrom([]int64{0, 1, 100, 256, 700, max(int64(n)-in, 0), max(int64(n)-in, 0) + 1}).Draw(t, "length"))
	q.Offset = offsetOf(int(max(q.Device, 0)), addr+core.DevAddr(in))
	switch rapid.IntRange(0, 40).Draw(t, "odd offset") {
	case 0:
		q.Offset = -1
	case 1:
		q.Offset, q.Len = math.MaxInt64-5, 100
	case 2:
		q.Len = math.MaxInt64
	}
	return q
}

func drawFD(t *rapid.T) int32 {
	return rapid.SampledFrom([]int32{fdWhole, fdWhole, fdSlow, fdEnds, fdBreaks, fdBad}).Draw(t, "fd")
}

func drawKind(t *rapid.T) engine.Kind {
	return rapid.SampledFrom([]engine.Kind{engine.Read, engine.Write}).Draw(t, "kind")
}

// huge is a transfer that can only be refused: it would take hours.
func huge(n uint64) bool { return n > 1<<40 }

func (s *machine) transfer(t *rapid.T) {
	fd := drawFD(t)
	parks := s.held && rapid.Bool().Draw(t, "parks")
	if parks {
		fd = fdParks
	}
	q := s.drawRequest(t, fd)
	id, n := int(q.Device), int64(q.Len)
	if q.Len > math.MaxInt64 || id < 0 && huge(q.Len) {
		q.Len, n = 1, 1
	}
	if rapid.IntRange(0, 30).Draw(t, "negative") == 0 {
		n = -1
	}
	kind := drawKind(t)
	what := fmt.Sprintf("Transfer(%v, %d, %d, %#x, %d, %d, %#x)", kind, fd, id, q.Buf, q.BufOffset, n, q.Offset)
	var in *area
	a := checkTransfer(id, q.Buf, q.BufOffset, n, q.Offset)
	if a.ok() && id >= 0 {
		in, a = s.m.transfer(id, q.Buf, q.BufOffset, uint64(n))
	}
	moved := int64(0)
	if a.ok() {
		var errno syscall.Errno
		if moved, errno = whole(fd, uint64(n), q.Offset); errno != 0 {
			moved, a = 0, answer{errno, core.ReasonKernel}
		}
	}
	var got int64
	var err error
	do := func() { got, err = s.l.Transfer(kind, fd, int32(id), q.Buf, q.BufOffset, n, q.Offset) }
	settle := func(t *rapid.T) {
		if want(t, what, err, a); got != moved {
			t.Fatalf("%s: moved %d, want %d", what, got, moved)
		}
	}
	if !parks || !a.ok() || n == 0 {
		do()
		settle(t)
		return
	}
	if in != nil {
		in.users++
	}
	s.later(what, id, turnTransfer, do, settle)
	s.parked++
	s.k.waitParked(s.parked)
}

// predict is the result of a request of a batch; in: the area it goes to.
func (s *machine) predict(q core.Request) (result int64, in *area, resolves bool) {
	id, fails := int(q.Device), -int64(syscall.EFAULT)
	if q.Offset < 0 || q.Len > uint64(math.MaxInt64-q.Offset) {
		return fails, nil, false
	}
	if id < 0 {
		if q.BufOffset < 0 {
			return fails, nil, false
		}
	} else {
		var a answer
		if in, a = s.m.transfer(id, q.Buf, q.BufOffset, q.Len); !a.ok() {
			return fails, nil, false
		}
	}
	moved, errno := whole(q.FD, q.Len, q.Offset)
	if errno != 0 {
		moved = -int64(errno)
	}
	return moved, in, true
}

// drawBatch is requests, their results, the areas they go to, and how many of
// them make I/O.
func (s *machine) drawBatch(t *rapid.T, queued bool) (reqs []core.Request, results []int64, areas []*area, ops int) {
	for range rapid.IntRange(0, 10).Draw(t, "requests") {
		fd := int32(fdHeld)
		if !queued {
			fd = drawFD(t)
		}
		q := s.drawRequest(t, fd)
		if queued {
			q.Len = max(q.Len, 1)
		}
		if q.Device < 0 && huge(q.Len) {
			q.Len = 1
		}
		result, in, resolves := s.predict(q)
		if resolves {
			ops++
		}
		if in != nil {
			areas = append(areas, in)
		}
		reqs, results = append(reqs, q), append(results, result)
	}
	return reqs, results, areas, ops
}

func wantResults(t *rapid.T, what string, failed int, reqs []core.Request, want []int64) {
	t.Helper()
	bad := 0
	for i, q := range reqs {
		if q.Result != want[i] {
			t.Fatalf("%s: request %d of %d, %+v: want the result %d", what, i, len(reqs), q, want[i])
		}
		if q.Result != int64(q.Len) {
			bad++
		}
	}
	if failed != bad {
		t.Fatalf("%s: answered %d, and %d of %d requests failed", what, failed, bad, len(reqs))
	}
}

func (s *machine) run(t *rapid.T) {
	if s.queued > 0 {
		return // it would wait for those
	}
	reqs, results, _, _ := s.drawBatch(t, false)
	failed, err := s.l.Run(drawKind(t), reqs)
	want(t, "Run", err, answer{})
	wantResults(t, "Run", failed, reqs, results)
}

func (s *machine) submit(t *rapid.T) {
	if !s.held && len(s.live) >= engine.MaxAsync {
		return // whether one of them is over by now is anybody's guess
	}
	reqs, results, areas, ops := s.drawBatch(t, s.held)
	h, err := s.l.Submit(drawKind(t), reqs)
	if s.held && ops > 0 && s.queued == engine.MaxAsync {
		want(t, "Submit of one too many", err, answer{syscall.EBUSY, core.ReasonSubmit})
		for _, q := range reqs {
			if q.Result != untouched {
				t.Fatalf("Submit failed and wrote the result %d", q.Result)
			}
		}
		return
	}
	want(t, "Submit", err, answer{})
	if s.held && ops > 0 {
		s.queued++
		for _, a := range areas {
			a.users++
		}
	}
	s.live = append(s.live, &handle{h, reqs, results})
}

// flood submits more batches than can wait for the kernel.
func (s *machine) flood(t *rapid.T) {
	for i := 0; s.held && i < engine.MaxAsync+4; i++ {
		s.submit(t)
	}
}

// wait waits for a batch, or destroys it.
func (s *machine) wait(t *rapid.T) {
	if len(s.live) == 0 || s.held {
		return
	}
	s.settle(t, rapid.IntRange(0, len(s.live)-1).Draw(t, "handle"), rapid.IntRange(0, 2).Draw(t, "wait") > 0)
}

func (s *machine) settle(t *rapid.T, i int, waits bool) {
	c := s.live[i]
	s.live = slices.Delete(s.live, i, i+1)
	if waits {
		failed, err := s.l.Wait(c.h)
		want(t, "Wait", err, answer{})
		wantResults(t, "Wait", failed, c.reqs, c.want)
	} else {
		before := slices.Clone(c.reqs)
		want(t, "Destroy", s.l.Destroy(c.h), answer{})
		if !slices.Equal(before, c.reqs) {
			t.Fatalf("Destroy wrote results: %+v, before %+v", c.reqs, before)
		}
	}
	_, err := s.l.Wait(c.h)
	want(t, "Wait for a handle that is spent", err, badHandle())
	want(t, "Destroy of a handle that is spent", s.l.Destroy(c.h), badHandle())
}

func (s *machine) badHandle(t *rapid.T) {
	h := core.Handle(rapid.Uint64Range(0, 1<<56-1).Draw(t, "handle"))
	if slices.ContainsFunc(s.live, func(c *handle) bool { return c.h == h }) {
		return
	}
	_, err := s.l.Wait(h)
	want(t, fmt.Sprintf("Wait(%#x)", h), err, badHandle())
	want(t, fmt.Sprintf("Destroy(%#x)", h), s.l.Destroy(h), badHandle())
}
