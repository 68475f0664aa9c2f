// A second Go library for one process, with a runtime, a collector and threads
// of its own: test/c/process_libraries.c.
package main

import "C"

import (
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

func main() {}

var kept [][]byte

// other_work keeps the other runtime busy and returns n.
//
//export other_work
func other_work(n C.int) C.int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	sum := 0
	for i := range int(n) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			b := make([]byte, 10000+i)
			mu.Lock()
			sum++
			kept = append(kept, b)
			if len(kept) > 100 {
				kept = nil
			}
			mu.Unlock()
		}()
	}
	wg.Wait()
	runtime.GC()
	return C.int(sum)
}

// other_nil dereferences nil and recovers: its handler for SIGSEGV works.
//
//export other_nil
func other_nil() (rc C.int) {
	defer func() {
		if recover() != nil {
			rc = 1
		}
	}()
	var p *int
	return C.int(*p)
}

// other_signals makes this runtime a user of signals.
//
//export other_signals
func other_signals() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
}
