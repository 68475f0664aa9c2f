package futex

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestWaitReturnsAtOnceWhenTheWordDiffers(t *testing.T) {
	var word atomic.Uint32
	word.Store(2)
	Wait(&word, 1)
}

func TestWakeWithoutSleepersIsHarmless(t *testing.T) {
	var word atomic.Uint32
	Wake(&word, 1)
}

// Each side sleeps until the other has taken its turn: a lost wake-up hangs.
func TestWakeEndsWait(t *testing.T) {
	const turns = 20_000
	var word atomic.Uint32 // whose turn it is
	var group sync.WaitGroup
	for me := range uint32(2) {
		group.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for range turns {
				for word.Load() != me {
					Wait(&word, 1-me)
				}
				word.Store(1 - me)
				Wake(&word, 1)
			}
		})
	}
	group.Wait()
}

func TestWakeLetsGoAllThreadsAskedFor(t *testing.T) {
	const threads = 16
	var open atomic.Uint32
	var group sync.WaitGroup
	for range threads {
		group.Go(func() {
			for open.Load() == 0 {
				Wait(&open, 0)
			}
		})
	}
	open.Store(1)
	Wake(&open, threads)
	group.Wait()
}
