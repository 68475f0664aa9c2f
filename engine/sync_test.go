package engine_test

import (
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"libphoenix/engine"
	"libphoenix/engine/enginetest"
	"libphoenix/engine/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSyncEngine(t *testing.T) {
	enginetest.Run(t, func(_ *testing.T, cfg engine.Config) engine.Engine { return engine.NewSync(cfg) })
}

// Callers that find no lane leave everything to the helpers.
func TestEngineWithoutCallerLanes(t *testing.T) {
	enginetest.Run(t, func(_ *testing.T, cfg engine.Config) engine.Engine { return engine.NewScarce(cfg, 0) },
		"a waiter helps", "a waiter helps the batches before its own", // it cannot
		"sync batches run side by side") // one helper does one transfer at a time
}

func TestEngineWithFewCallerLanes(t *testing.T) {
	enginetest.Run(t, func(_ *testing.T, cfg engine.Config) engine.Engine { return engine.NewScarce(cfg, 3) },
		"a waiter helps", "a waiter helps the batches before its own", "sync batches run side by side")
}

// A batch too small to be worth help by estimate gets it when its first
// transfer is slow.
func TestSlowFirstTransferCallsHelpers(t *testing.T) {
	script := new(fault.Script)
	e := fault.NewEngine(script, engine.Config{Helpers: 1})
	defer e.Close()
	fd, mem := hotFile(t, 8*block)
	first, rest := fault.NewBarrier(), fault.NewBarrier()
	script.Add(fault.On(engine.Read).At(0).Late(first), fault.On(engine.Read).Late(rest))
	batch := &engine.Batch{Ops: benchOps(fd, mem, 8)}
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		e.Begin(batch, engine.Sync)
		e.Run(batch)
	}()
	first.WaitParked(1)
	pass60Microseconds()
	first.Release()
	rest.WaitParked(2) // the caller and the helper
	rest.Release()
	<-ran
	check(t, batch)
}

// pass60Microseconds returns no sooner than that.
func pass60Microseconds() {
	for start := time.Now(); time.Since(start) < 60*time.Microsecond; {
		runtime.Gosched()
	}
}
