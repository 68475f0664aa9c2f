package phxdev

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// mask is what the calling thread blocks.
func mask(t *testing.T) uint64 {
	t.Helper()
	var now unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, nil, &now); err != nil {
		t.Fatal(err)
	}
	return now.Val[0]
}

func TestSignalsAreHeldBackAndLetCome(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := mask(t)
	h := HoldSignals()
	inside := mask(t)
	nested := HoldSignals()
	nested.Release()
	again := mask(t)
	h.Release()
	if after := mask(t); after != before || again != inside {
		t.Errorf("mask %#x before, %#x and %#x inside, %#x after", before, inside, again, after)
	}
	for sig := 1; sig <= 64; sig++ {
		want := false
		switch unix.Signal(sig) {
		case unix.SIGKILL, unix.SIGSTOP: // cannot be
		case unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSYS, 32, 33:
			want = before&(1<<(sig-1)) != 0
		default:
			want = true
		}
		if got := inside&(1<<(sig-1)) != 0; got != want {
			t.Errorf("signal %d held back: %v, want %v", sig, got, want)
		}
	}
}

func TestHoldingSignalsAllocatesNothing(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() {
		h := HoldSignals()
		defer h.Release()
	}); got != 0 {
		t.Fatalf("%v allocations, want 0", got)
	}
}
