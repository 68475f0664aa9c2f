package core

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
	"libphoenix/internal/need"
)

func TestEachFailingRequestOfABatchIsOneEvent(t *testing.T) {
	log := &events{max: LevelInfo}
	r := newRig(t, withLog(log))
	r.open(2)
	r.register(2, page, page)
	f := newFile(t, page)
	fd := fd(f)
	for _, kind := range []engine.Kind{engine.Read, engine.Write} {
		for _, async := range []bool{false, true} {
			log.all = nil
			reqs := []Request{
				{FD: fd, Device: 2, Buf: page, Len: 10},
				{FD: fd, Device: 2, Buf: 5 * page, BufOffset: 3, Len: 10, Offset: 4},
				{FD: -5, Device: 2, Buf: page, BufOffset: 100, Len: 10, Offset: 6},
				{FD: fd, Device: -1, Buf: 0, Len: 10},
			}
			call := [2][2]string{{"phxfs_read_batch", "phxfs_batch_submit_read"}, {"phxfs_write_batch", "phxfs_batch_submit_write"}}[kind][0]
			if async {
				call = [2]string{"phxfs_batch_submit_read", "phxfs_batch_submit_write"}[kind]
				h, err := r.Submit(kind, reqs)
				if err != nil {
					t.Fatal(err)
				}
				if err := r.Destroy(h); err != nil {
					t.Fatal(err)
				}
			} else if failed, err := r.Run(kind, reqs); failed != 3 || err != nil {
				t.Fatalf("Run = %d, %v", failed, err)
			}
			want := []Event{
				{LevelError, call, 2, 5*page + 3, 10, 4, fd, syscall.EFAULT, ReasonUnregistered.String()},
				{LevelError, call, -1, 0, 10, 0, fd, syscall.EFAULT, ReasonNullAddress.String()},
				{LevelError, call, 2, page + 100, 10, 6, -5, syscall.EBADF, syscall.EBADF.Error()},
			}
			got := log.at(LevelError)
			if len(got) != len(want) {
				t.Fatalf("%d events, want %d: %+v", len(got), len(want), got)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("event %d is %+v, want %+v", i, got[i], want[i])
				}
			}
		}
	}
}

func TestDevicesAndRegistrationsTellTheirLife(t *testing.T) {
	log := &events{max: LevelDebug}
	r := newRig(t, withLog(log))
	r.open(1)
	r.open(1)
	r.register(1, page, page)
	r.deregister(1, page, page)
	_ = r.Close(1)
	_ = r.Close(1)
	var calls []string
	for _, e := range log.all {
		if e.Device != 1 || e.FD != -1 || e.Errno != 0 {
			t.Errorf("event %+v", e)
		}
		calls = append(calls, e.Call)
	}
	if got, want := strings.Join(calls, " "), "phxfs_open phxfs_regmem phxfs_deregmem phxfs_close"; got != want {
		t.Fatalf("events of %q, want %q", got, want)
	}
}

// lockless is a Logger that fails when an event comes under a device's lock.
type lockless struct {
	t     *testing.T
	d     *device
	count int
}

func (l *lockless) Enabled(Level) bool { return true }
func (l *lockless) Event(e Event) {
	l.count++
	if !l.d.mu.TryLock() {
		l.t.Errorf("event under a lock: %+v", e)
		return
	}
	l.d.mu.Unlock()
}

func TestEventsComeWithoutALock(t *testing.T) {
	log := &lockless{t: t}
	r := newRig(t, withLog(log))
	log.d = &r.devices[0]
	r.open(0)
	r.register(0, page, page)
	good := Request{FD: -1, Buf: page, Len: 1}
	reqs := []Request{good, {Buf: 9 * page}, good, {Buf: page, BufOffset: -1}, {Device: 9}, good}
	if failed, err := r.Run(engine.Read, reqs); failed != len(reqs) || err != nil {
		t.Fatalf("Run = %d, %v", failed, err)
	}
	r.deregister(0, page, page)
	if err := r.Close(0); err != nil {
		t.Fatal(err)
	}
	if log.count != len(reqs)+4 {
		t.Fatalf("%d events, want %d", log.count, len(reqs)+4)
	}
}

func TestFailingCallsAreLeftToTheCallerToReport(t *testing.T) {
	log := &events{max: LevelDebug}
	r := newRig(t, withLog(log))
	_ = r.Open(9)
	_ = r.Close(0)
	_, _ = r.Register(0, page, page)
	_ = r.Deregister(0, page, page)
	_, _ = r.Transfer(engine.Read, -1, -1, page, 0, 5, 0)
	_, _ = r.Wait(5)
	if len(log.all) != 0 {
		t.Fatalf("events %+v", log.all)
	}
}

// directFile opens a file of n bytes with O_DIRECT, or skips.
func directFile(t *testing.T, n int) *os.File {
	t.Helper()
	path := newFile(t, n).Name()
	for _, dir := range []string{"", "/var/tmp", "/work"} {
		if dir != "" {
			tmp, err := os.CreateTemp(dir, "phx-direct-*")
			if err != nil {
				continue
			}
			path = tmp.Name()
			t.Cleanup(func() { _ = os.Remove(path) })
			_ = tmp.Truncate(int64(n))
			_ = tmp.Close()
		}
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_DIRECT, 0)
		if err == nil {
			t.Cleanup(func() { _ = f.Close() })
			return f
		}
	}
	need.Missing(t, need.ODirect, "no folder takes it")
	return nil
}

func TestMisalignedDirectIOIsExplained(t *testing.T) {
	f := directFile(t, 4*page)
	fd := fd(f)
	for _, c := range []struct {
		addr, n uint64
		off     int64
		want    []string
		not     []string
	}{
		{page, page, 0, nil, []string{"address", "length", "offset"}},
		{page + 1, page, 0, []string{"O_DIRECT", "address"}, []string{"length", "offset"}},
		{page, page + 1, 0, []string{"length"}, []string{"address", "offset"}},
		{page, page, 1, []string{"offset"}, []string{"address", "length"}},
		{page + 1, 1, 1, []string{"address", "length", "offset", "alignment"}, nil},
	} {
		got := ExplainEINVAL(fd, c.addr, c.n, c.off)
		first, _, _ := strings.Cut(got, "(")
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%+v: %q does not name %q", c, got, w)
			}
		}
		for _, w := range c.not {
			if strings.Contains(first, w) {
				t.Errorf("%+v: %q names %q", c, got, w)
			}
		}
	}
	if got := ExplainEINVAL(-1, 1, 1, 1) + ExplainEINVAL(func() int32 { return int32(newFile(t, 1).Fd()) }(), 1, 1, 1); got != "" {
		t.Errorf("explained %q for files without O_DIRECT", got)
	}
}

func TestMisalignedDirectRequestIsExplainedInItsEvent(t *testing.T) {
	log := &events{max: LevelError}
	r := newRig(t, withLog(log))
	_, cpu := newBuffer(t, page)
	f := directFile(t, page)
	fd := fd(f)
	reqs := []Request{{FD: fd, Device: -1, Buf: cpu, BufOffset: 1, Len: 4096}}
	if failed, err := r.Run(engine.Read, reqs); failed != 1 || err != nil {
		if failed == 0 {
			need.Missing(t, need.ODirect, "this file system takes what is misaligned")
		}
		t.Fatalf("Run = %d, %v", failed, err)
	}
	if reqs[0].Result != -int64(syscall.EINVAL) {
		need.Missing(t, need.ODirect, "this file system answers %d to what is misaligned", reqs[0].Result)
	}
	if e := log.at(LevelError); len(e) != 1 || !strings.Contains(e[0].Reason, "address is not a multiple") {
		t.Fatalf("events %+v", e)
	}
}
