// Package statemachine calls the library at random and predicts every answer.
//
//   - TestSequencesOfCalls: one call at a time on device nodes, beside a model
//     (model_test.go). The kernel below is a fake that can hold transfers, so
//     calls that must wait do, and what others answer meanwhile is predicted, too.
//   - TestSixteenThreads: the answers of 16 threads are searched for an order of
//     their calls that explains them (spec_test.go, with porcupine).
//   - TestSequencesWithData: the host connector, or, under phx emulate, device
//     nodes; both engines, the kernel's own I/O, and a copy of all data.
//
// The fake kernel (kernel_test.go, transfers_test.go) also keeps the books of the
// driver: a second UNMAP, munmap before UNMAP or with I/O inside, transfers to the
// wrong place or after UNMAP, what is left at the end.
//
// The short run is part of "go test". With PHX_SOAK_SECONDS=N each test goes on
// for N seconds, the last one for N on each engine; "make soak" does that under
// the race detector.
//
// That the tests find bugs is tried by planted.py, which "make soak" runs, too. It
// plants, one at a time: a second last deregmem succeeds; its gate stays open;
// overlapping ranges are accepted; duplicates are not counted; UNMAP twice, or
// never, or not again after a failure; munmap before I/O is over; a last close
// that waits for no I/O, or for no calls; a range usable after its munmap failed;
// a duplicate that is given the dying range; transfers that end, or begin, one
// byte behind the range, or forget the buffer offset; one error for another; a
// handle that can be waited for twice; a refused submit that keeps its gates; a
// wrong count of failed requests; a closing device that takes I/O.
package statemachine
