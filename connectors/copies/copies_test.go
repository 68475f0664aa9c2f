package copies

import (
	"errors"
	"syscall"
	"testing"

	"libphoenix/connectors"
)

// fakeDriver has events that are over when the test says.
type fakeDriver struct {
	queued, done int // copies
	events       [connectors.StreamDepth]int
	drained      int
	copyErr      error
	recordErr    error
	overErr      error
}

func (*fakeDriver) Alloc(uint64) (uintptr, error) { return 4096, nil }
func (*fakeDriver) Free(uintptr)                  {}
func (d *fakeDriver) Copy(bool, connectors.DevAddr, uintptr, uint64) error {
	if d.copyErr == nil {
		d.queued++
	}
	return d.copyErr
}
func (d *fakeDriver) Record(event int) error {
	if d.recordErr == nil {
		d.events[event] = d.queued
	}
	return d.recordErr
}
func (d *fakeDriver) Over(event int) (bool, error) { return d.events[event] <= d.done, d.overErr }
func (d *fakeDriver) Await(event int) error {
	d.done = max(d.done, d.events[event])
	return d.overErr
}
func (d *fakeDriver) Drain() { d.drained++ }
func (*fakeDriver) Close()   {}

func TestFinishedCountsInOrder(t *testing.T) {
	d := new(fakeDriver)
	s := New(d)
	want := func(what string, wait bool, n uint64) {
		t.Helper()
		if got, err := s.Finished(wait); got != n || err != nil {
			t.Fatalf("%s: Finished = %d, %v; want %d", what, got, err, n)
		}
	}
	want("nothing begun", false, 0)
	want("nothing to wait for", true, 0)
	for round := range uint64(3 * connectors.StreamDepth) {
		base := 3 * round
		for range 3 {
			if err := s.Copy(true, 1<<20, 4096, 100); err != nil {
				t.Fatal(err)
			}
		}
		want("none over", false, base)
		d.done++
		want("one over", false, base+1)
		want("waited for one more", true, base+2)
		d.done = d.queued
		want("all over", true, base+3)
	}
}

func TestFailures(t *testing.T) {
	bad := errors.New("bad")
	d := &fakeDriver{copyErr: syscall.EFAULT}
	s := New(d)
	if err := s.Copy(true, 1, 1, 1); !errors.Is(err, syscall.EFAULT) || d.drained != 0 {
		t.Errorf("refused copy: %v, drained %d", err, d.drained)
	}
	d.copyErr, d.recordErr = nil, bad
	if err := s.Copy(true, 1, 1, 1); !errors.Is(err, bad) || d.drained != 1 {
		t.Errorf("copy without event: %v, drained %d: it may still run", err, d.drained)
	}
	if n, err := s.Finished(false); n != 0 || err != nil {
		t.Errorf("neither counts: %d, %v", n, err)
	}
	d.recordErr = nil
	for range 2 {
		if err := s.Copy(false, 1, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	d.overErr = bad
	if n, err := s.Finished(true); n != 0 || !errors.Is(err, bad) || d.drained != 2 {
		t.Errorf("lost device: %d, %v, drained %d", n, err, d.drained)
	}
}
