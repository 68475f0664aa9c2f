package fault

import (
	"math"
	"syscall"

	"libphoenix/engine"
)

// Rule says which calls it matches and what happens to them. Build it with On
// and the methods below; each returns the changed rule.
type Rule struct {
	kind     engine.Kind
	fd       int32
	anyFD    bool
	from, to int64 // file offsets of the call's first byte, to excluded
	nth      int   // only the nth matching call, from 1; 0: every one

	errno   syscall.Errno
	short   uint64 // at most this many bytes
	cut     bool
	value   any
	panics  bool
	barrier *Barrier
}

// On matches every call of kind k.
func On(k engine.Kind) Rule { return Rule{kind: k, anyFD: true, to: math.MaxInt64} }

// FD matches only calls on fd.
func (r Rule) FD(fd int32) Rule { r.fd, r.anyFD = fd, false; return r }

// At matches only calls whose offset is off.
func (r Rule) At(off int64) Rule { return r.Between(off, off+1) }

// Between matches only calls whose offset is in from..to-1.
func (r Rule) Between(from, to int64) Rule { r.from, r.to = from, to; return r }

// Nth matches only the nth call, from 1, of those that the rest matches.
func (r Rule) Nth(n int) Rule { r.nth = n; return r }

// Fail answers with errno, without a real call.
func (r Rule) Fail(errno syscall.Errno) Rule { r.errno = errno; return r }

// Short moves at most n bytes; 0 makes no real call and looks like the end of
// the file.
func (r Rule) Short(n uint64) Rule { r.short, r.cut = n, true; return r }

// Panic panics with v.
func (r Rule) Panic(v any) Rule { r.value, r.panics = v, true; return r }

// Late holds the call at b before anything else happens to it, the real call
// included: the data moves late, too.
func (r Rule) Late(b *Barrier) Rule { r.barrier = b; return r }

func (r *Rule) matches(k engine.Kind, fd int32, off int64) bool {
	return k == r.kind && (r.anyFD || fd == r.fd) && off >= r.from && off < r.to
}
