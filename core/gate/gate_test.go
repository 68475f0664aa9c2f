package gate

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestZeroGateIsOpenAndEmpty(t *testing.T) {
	var g Gate
	if g.Closed() || g.Users() != 0 {
		t.Fatalf("closed %v, users %d", g.Closed(), g.Users())
	}
	if !g.Enter() || g.Users() != 1 {
		t.Fatalf("Enter of an open gate refused, or users %d, want 1", g.Users())
	}
	g.Leave()
	if g.Users() != 0 {
		t.Fatalf("users %d after Leave, want 0", g.Users())
	}
}

func TestClosedGateRefusesAndCountsNobody(t *testing.T) {
	var g Gate
	g.Close()
	g.Close()
	if g.Enter() || g.EnterN(3) {
		t.Fatal("a closed gate let somebody in")
	}
	if g.Users() != 0 || !g.Closed() {
		t.Fatalf("users %d, closed %v after refusals", g.Users(), g.Closed())
	}
	g.Reopen()
	if !g.EnterN(3) || g.Users() != 3 {
		t.Fatalf("a reopened gate refused, or users %d, want 3", g.Users())
	}
}

func TestDrainOfAnEmptyGateReturnsAtOnce(t *testing.T) {
	var g Gate
	g.Close()
	g.Drain()
}

func TestFullGateRefusesAndStaysIntact(t *testing.T) {
	var g Gate
	if !g.EnterN(full - 1) {
		t.Fatal("EnterN below the limit refused")
	}
	if g.Enter() || g.EnterN(2) {
		t.Fatal("the gate let in more than it counts")
	}
	if g.Users() != int(full-1) || g.Closed() {
		t.Fatalf("users %d, closed %v", g.Users(), g.Closed())
	}
}

func TestDrainWaitsForTheLastUser(t *testing.T) {
	for range 200 {
		var g Gate
		const users = 4
		var inside atomic.Int64
		inside.Store(users)
		if !g.EnterN(users) {
			t.Fatal("refused")
		}
		g.Close()
		done := make(chan int64)
		go func() { g.Drain(); done <- inside.Load() }()
		for range users {
			go func() { inside.Add(-1); g.Leave() }()
		}
		if left := <-done; left != 0 {
			t.Fatalf("Drain returned with %d inside", left)
		}
	}
}

func TestNobodyIsInsideAfterDrainWhileOthersKeepTrying(t *testing.T) {
	var g Gate
	var inside atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for !stop.Load() {
				if g.Enter() {
					inside.Add(1)
					inside.Add(-1)
					g.Leave()
				}
				runtime.Gosched()
			}
		})
	}
	for range 2000 {
		g.Close()
		g.Drain()
		if n := inside.Load(); n != 0 {
			t.Fatalf("%d inside a drained gate", n)
		}
		g.Reopen()
	}
	stop.Store(true)
	wg.Wait()
	if g.Users() != 0 || g.Closed() {
		t.Fatalf("users %d, closed %v at the end", g.Users(), g.Closed())
	}
}

func BenchmarkEnterLeave(b *testing.B) {
	var g Gate
	for b.Loop() {
		if g.Enter() {
			g.Leave()
		}
	}
}
