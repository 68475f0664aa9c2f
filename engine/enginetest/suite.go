package enginetest

import (
	"slices"
	"testing"

	"libphoenix/engine"
)

// New makes the engine under test. The suite closes it.
type New func(t *testing.T, cfg engine.Config) engine.Engine

type story struct {
	name string
	tell func(t *testing.T, make New)
}

// Run runs the suite against the engines that make makes, but for the stories
// in without.
func Run(t *testing.T, make New, without ...string) {
	RunPlain(t, make, without...)
	RunScripted(t, make, without...)
}

// RunPlain is the half that uses the real kernel.
func RunPlain(t *testing.T, make New, without ...string) { run(t, make, plain(), without) }

// RunScripted is the half that puts a fault.Script under the engine.
func RunScripted(t *testing.T, make New, without ...string) { run(t, make, scripted(), without) }

func run(t *testing.T, make New, stories []story, without []string) {
	for _, s := range stories {
		if !slices.Contains(without, s.name) {
			t.Run(s.name, func(t *testing.T) { s.tell(t, make) })
		}
	}
}

func plain() []story {
	return []story{
		{"random batches read what pread reads", randomBatches},
		{"every batch size", everyBatchSize},
		{"big ops are whole across slices", bigOps},
		{"reads stop at the end of the file", endOfFile},
		{"writes", writes},
		{"big write to an O_APPEND file keeps its order", appendOrder},
		{"one batch over many files", manyFiles},
		{"each op has its own errno", ownErrno},
		{"O_DIRECT misalignment is the kernel's EINVAL", misaligned},
		{"an abandoned ticket holds nothing up", abandoned},
		{"submit without ops", submitEmpty},
		{"async completes without a waiter", noWaiter},
		{"wait from another thread", waitElsewhere},
		{"64 threads at once", manyThreads},
		{"slots free when the I/O is done", slotsFree},
		{"steady state allocates nothing", noAllocations},
		{"no thread before the first need, none after close", threads},
	}
}

func scripted() []story {
	return []story{
		{"sync batches run side by side", sideBySide},
		{"async waits for an earlier sync batch", asyncAfterSync},
		{"async waits for a begun sync batch", asyncAfterBegunSync},
		{"sync waits for an earlier async batch", syncAfterAsync},
		{"sync waits for an async batch not submitted yet", syncAfterBegunAsync},
		{"async batches run one at a time", oneAtATime},
		{"order under load", orderUnderLoad},
		{"the 17th async batch gets EBUSY", seventeenth},
		{"a waiter helps", waiterHelps},
		{"a waiter helps the batches before its own", waiterHelpsOthers},
		{"Done comes before the slot and the wait", doneFirst},
		{"close waits for submitted batches", closeDrains},
		{"every short count", everyShortCount},
		{"an error after progress keeps the bytes", errorAfterProgress},
		{"each errno at each position", everyPosition},
		{"EINTR is retried", interrupted},
		{"neighbours are moved as one", mergedCalls},
		{"a run that stops anywhere is completed", mergedShort},
		{"an op that fails in a run fails alone", mergedFailure},
		{"what must not be merged is not", notMerged},
		{"a big op ends at its first bad slice", badSlice},
		{"run returns after the last late transfer", lateRun},
		{"wait returns after the last late transfer", lateWait},
		{"a panic in the caller's lane is contained", callerPanic},
		{"a panic in a helper is contained", helperPanic},
		{"a panic in a callback is contained", callbackPanic},
	}
}
