package enginetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"libphoenix/engine"
)

// ticket is what orderUnderLoad knows of one batch: where its calls lie in the
// trace.
type ticket struct {
	order       engine.Order
	first, last int // indices of events; first -1: none seen
}

// orderUnderLoad states: in the trace of a random load, every async batch lies
// after all batches with earlier tickets and before all with later ones.
func orderUnderLoad(t *testing.T, make_ New) {
	const threads, rounds, ops = 8, 40, 3
	s := newStage(t, make_, 3)
	var mu sync.Mutex // makes the order of Begin calls known
	var tickets []ticket
	begin := func(b *engine.Batch, o engine.Order) int {
		mu.Lock()
		defer mu.Unlock()
		s.Begin(b, o)
		tickets = append(tickets, ticket{o, -1, -1})
		return len(tickets) - 1
	}
	var group sync.WaitGroup
	for thread := range threads {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(thread), 1))
			for range rounds {
				var b engine.Batch
				o := engine.Order(rnd.IntN(2))
				at := int64(begin(&b, o)) * ops * block
				b.Ops = s.apart(blocks(s.f.fd, s.mem[:ops*block], block, at))
				switch {
				case rnd.IntN(8) == 0:
					s.Abandon(&b)
				case o == engine.Sync:
					s.Run(&b)
				case s.Submit(&b) == nil:
					s.Wait(&b)
				default:
					t.Error("submit failed with fewer batches than slots")
				}
			}
		})
	}
	group.Wait()
	events := s.script.Events()
	for i, e := range events {
		k := &tickets[e.Off/block/ops]
		if k.first < 0 {
			k.first = i
		}
		k.last = i
	}
	latest, latestAsync := -1, -1 // ends of what came before
	for i, k := range tickets {
		if k.first < 0 {
			continue
		}
		if k.first < latestAsync || k.order == engine.Async && k.first < latest {
			t.Errorf("ticket %d (order %d) began at event %d; an earlier one ended at %d, an async one at %d", i, k.order, k.first, latest, latestAsync)
		}
		latest = max(latest, k.last)
		if k.order == engine.Async {
			latestAsync = max(latestAsync, k.last)
		}
	}
}

func manyThreads(t *testing.T, make_ New) {
	const threads, rounds, most = 64, 25, 300
	r := newRig(t, make_, 3, nil)
	f := newFile(t, t.TempDir(), noise(8, most*block))
	var group sync.WaitGroup
	for thread := range threads {
		mem := memory(t, most*block)
		group.Go(func() {
			if thread%2 == 0 { // as a C caller's thread
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			rnd := rand.New(rand.NewPCG(uint64(thread), 2))
			var b engine.Batch
			for round := range rounds {
				n := []int{1, 8, 40, most}[rnd.IntN(4)]
				clear(mem[:n*block])
				o := engine.Order(rnd.IntN(8) / 7)
				r.Begin(&b, o)
				b.Ops = r.apart(blocks(f.fd, mem[:n*block], block, 0))
				if o == engine.Sync {
					r.Run(&b)
				} else if r.Submit(&b) == nil {
					r.Wait(&b)
				} else {
					continue // the slots are taken
				}
				what := fmt.Sprintf("thread %d, round %d, order %d", thread, round, o)
				wantAll(t, what, b.Ops)
				if !bytes.Equal(mem[:n*block], f.data[:n*block]) {
					t.Errorf("%s: wrong data", what)
				}
			}
		})
	}
	group.Wait()
}
