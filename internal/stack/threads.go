package stack

import (
	"runtime"
	"sync"
)

// SpareThreads makes n threads that Go keeps, idle, until it has use for them:
// a thread that cannot be created when it is needed ends the process.
func SpareThreads(n int) {
	var up, down sync.WaitGroup
	gate := make(chan struct{})
	for range n {
		up.Add(1)
		down.Add(1)
		go func() {
			defer down.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread() // else the thread ends with the goroutine
			up.Done()
			<-gate
		}()
	}
	up.Wait() // each stands on a thread of its own
	close(gate)
	down.Wait()
}
