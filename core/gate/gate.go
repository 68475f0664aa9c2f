package gate

import (
	"sync/atomic"

	"libphoenix/internal/futex"
)

// ClosedBit in a gate's word refuses new users. The exit handler (cabi/live.c)
// sets it in a gate without users; everything else is this package's business.
const ClosedBit = 1 << 31

const (
	closed uint32 = ClosedBit
	full   uint32 = 1 << 30 // users; half of what fits, so that refused ones cannot reach the bit above
)

// Gate is open and empty as its zero value. It must not be copied after use.
type Gate struct {
	// word is closed | users. Users may begin to count only while closed is
	// not set. Written by: any user, the owner. Waited on by: the owner.
	word atomic.Uint32
}

// Enter counts the caller in and answers true, or answers false if the gate is
// closed (or holds 2^30 users); then there is nothing to leave.
func (g *Gate) Enter() bool {
	if g.word.Add(1)&(closed|full) == 0 {
		return true
	}
	g.Leave()
	return false
}

// EnterN counts n users in at once, n < 2^30; each of them leaves by itself.
func (g *Gate) EnterN(n uint32) bool {
	if g.word.Add(n)&(closed|full) == 0 {
		return true
	}
	g.leave(n)
	return false
}

// Leave counts one user out. The last one to leave a closed gate wakes the
// thread that drains it; whatever the gate guards may be gone when Leave
// returns.
func (g *Gate) Leave() { g.leave(1) }

func (g *Gate) leave(n uint32) {
	if g.word.Add(-n) == closed {
		futex.Wake(&g.word, 1<<30)
	}
}

// Close refuses new users from now on. Closing a closed gate changes nothing.
func (g *Gate) Close() { g.word.Or(closed) }

// Drain returns when nobody is inside. The gate must be closed, else those who
// leave wake nobody.
func (g *Gate) Drain() {
	for {
		w := g.word.Load()
		if w&^closed == 0 {
			return
		}
		futex.Wait(&g.word, w)
	}
}

// Reopen lets users in again.
func (g *Gate) Reopen() { g.word.And(^closed) }

// Users is how many are inside at this instant: a hint, unless the gate is
// closed and the answer is 0.
func (g *Gate) Users() int { return int(g.word.Load() &^ closed) }

// Closed says whether new users are refused.
func (g *Gate) Closed() bool { return g.word.Load()&closed != 0 }
