package stack

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
)

func stackBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestReserveGrowsTheStackOnce(t *testing.T) {
	const goroutines = 64
	runtime.GC() // stacks of an earlier run would be used again, uncounted
	before := stackBytes()
	var ended sync.WaitGroup
	defer ended.Wait()
	up, down := make(chan struct{}), make(chan struct{})
	for range goroutines {
		ended.Go(func() {
			for range 10 {
				Reserve()
			}
			up <- struct{}{}
			<-down
		})
	}
	for range goroutines {
		<-up
	}
	each := (stackBytes() - before) / goroutines
	close(down)
	if each < 60<<10 || each > 72<<10 {
		t.Errorf("%d bytes of stack for each goroutine, want 64 KiB", each)
	}
}
