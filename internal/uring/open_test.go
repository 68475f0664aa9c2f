package uring_test

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"libphoenix/internal/uring"
	"libphoenix/internal/uring/uringtest"
)

// asked is the setups and registrations that a kernel was asked for.
type asked struct {
	flags, entries []uint32
	registers      int
}

// watch records what Open asks of k.
func watch(k uring.Kernel) (*uringtest.Tamper, *asked) {
	a := new(asked)
	return &uringtest.Tamper{
		Kernel: k,
		OnSetup: func(entries, flags uint32) syscall.Errno {
			a.flags, a.entries = append(a.flags, flags), append(a.entries, entries)
			return 0
		},
		OnRegister: func(uint32) syscall.Errno { a.registers++; return 0 },
	}, a
}

func nop(t *testing.T, r *uring.Ring) {
	t.Helper()
	r.Queue(uring.Nop, -1, 0, 0, 0, 7)
	if errno := r.Enter(1); errno != 0 {
		t.Fatalf("enter: %v", errno)
	}
	if id, res, ok := r.Next(); !ok || id != 7 || res != 0 {
		t.Fatalf("completion %v of %d: %d; want 7: 0", ok, id, res)
	}
}

const (
	shared = uint32(uring.SetupNoSQArray | uring.SetupCoopTaskrun | uring.SetupSubmitAll)
	owned  = shared | uring.SetupSingleIssuer
)

// Each rung is a kernel that lacks a flag and, as kernels do, all newer ones.
func TestFlagsAreDroppedNewestFirst(t *testing.T) {
	rungs := []struct {
		kernel        string
		lacks         uint32
		shared, owned uint32
	}{
		{"6.6", 0, shared, owned},
		{"6.0", uring.SetupNoSQArray, shared &^ uring.SetupNoSQArray, owned &^ uring.SetupNoSQArray},
		{"5.19", uring.SetupNoSQArray | uring.SetupSingleIssuer,
			uring.SetupCoopTaskrun | uring.SetupSubmitAll, uring.SetupCoopTaskrun | uring.SetupSubmitAll},
		{"5.18", owned &^ uring.SetupSubmitAll, uring.SetupSubmitAll, uring.SetupSubmitAll},
		{"5.1", owned, 0, 0},
	}
	for _, rung := range rungs {
		for _, own := range []bool{false, true} {
			e := uringtest.New(nil)
			e.Lacks = rung.lacks
			k, a := watch(e)
			r, err := uring.Open(k, uring.Options{Entries: 16, Owned: own})
			if err != nil {
				t.Fatalf("%s, owned %v: %v", rung.kernel, own, err)
			}
			want, most := rung.shared, shared
			if own {
				want, most = rung.owned, owned
			}
			if r.Flags() != want {
				t.Errorf("%s, owned %v: flags %#x, want %#x", rung.kernel, own, r.Flags(), want)
			}
			for i, f := range a.flags {
				if i == 0 && f != most || i > 0 && (f&^a.flags[i-1] != 0 || f == a.flags[i-1]) {
					t.Errorf("%s, owned %v: asked for flags %#x", rung.kernel, own, a.flags)
				}
			}
			nop(t, r)
			r.Close()
			if n := e.Rings(); n != 0 {
				t.Errorf("%s, owned %v: %d rings left after Close", rung.kernel, own, n)
			}
		}
	}
}

func TestEntriesStepDownWhileMemoryIsShort(t *testing.T) {
	e := uringtest.New(nil)
	e.MostEntries = 20
	k, a := watch(e)
	r, err := uring.Open(k, uring.Options{Entries: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if want := []uint32{100, 50, 25, 12}; !slices.Equal(a.entries, want) {
		t.Errorf("asked for %d entries, want %d", a.entries, want)
	}
	if r.Entries() != 16 {
		t.Errorf("%d entries, want 12 rounded up", r.Entries())
	}
	nop(t, r)

	// The mappings may be what there is no memory for.
	k, _ = watch(uringtest.New(nil))
	maps := 0
	k.OnMap = func(int64) syscall.Errno {
		if maps++; maps <= 3 {
			return syscall.ENOMEM
		}
		return 0
	}
	r2, err := uring.Open(k, uring.Options{Entries: 256})
	if err != nil {
		t.Fatal(err)
	}
	defer r2.Close()
	if r2.Entries() != 32 {
		t.Errorf("%d entries after three failed mappings, want 32", r2.Entries())
	}
	nop(t, r2)
}

func TestOpenKeepsTheReason(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSYS, syscall.EPERM, syscall.EMFILE, syscall.ENOMEM, syscall.EINVAL} {
		e := uringtest.New(nil)
		e.Refusal = errno
		if _, err := uring.Open(e, uring.Options{Entries: 256, Owned: true}); !errors.Is(err, errno) {
			t.Errorf("refused with %v: Open says %v", errno, err)
		}
	}
	for _, off := range []int64{uring.OffSQRing, uring.OffCQRing, uring.OffSQEs} {
		e := uringtest.New(nil)
		e.Features = 0 // three mappings
		k := &uringtest.Tamper{Kernel: e, OnMap: func(at int64) syscall.Errno {
			if at == off {
				return syscall.EPERM
			}
			return 0
		}}
		if _, err := uring.Open(k, uring.Options{Entries: 256}); !errors.Is(err, syscall.EPERM) {
			t.Errorf("mapping at %#x refused: Open says %v", off, err)
		}
		if n := e.Rings(); n != 0 {
			t.Errorf("mapping at %#x refused: %d rings left", off, n)
		}
	}
}

func TestOldKernelWithTwoQueueMappings(t *testing.T) {
	e := uringtest.New(nil)
	e.Features, e.Lacks = 0, owned
	r, err := uring.Open(e, uring.Options{Entries: 8})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		nop(t, r)
	}
	r.Close()
}

// An owned ring drops its fd if the kernel lets it, and keeps it if not.
func TestRegisteredRing(t *testing.T) {
	cases := []struct {
		what     string
		features uint32
		refused  bool
		fd       bool
		flags    uint32
	}{
		{"6.3", uring.FeatSingleMmap | uring.FeatRegRegRing, false, false, owned},
		{"6.1", uring.FeatSingleMmap, false, true, owned},
		{"no registering", uring.FeatSingleMmap, true, true, owned},
	}
	for _, c := range cases {
		e := uringtest.New(nil)
		e.Features, e.NoRegister = c.features, c.refused
		r, err := uring.Open(e, uring.Options{Entries: 8, Owned: true})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(r.HoldsFD(), r.Flags())
		if want := fmt.Sprint(c.fd, c.flags); got != want {
			t.Errorf("%s: fd and flags %s, want %s", c.what, got, want)
		}
		nop(t, r)
		r.Close()
		if n := e.Rings(); n != 0 {
			t.Errorf("%s: %d names left after Close", c.what, n)
		}
	}
	e := uringtest.New(nil)
	k, a := watch(e)
	r, err := uring.Open(k, uring.Options{Entries: 8})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if a.registers != 0 {
		t.Error("a ring that several threads may use was registered for one")
	}
}
