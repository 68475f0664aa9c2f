package engine

import (
	"fmt"
	"runtime/debug"
	"syscall"
)

// guard calls part and keeps a panic in it from ending the process, which is
// the user's: notice is told, with the place it came from. True: there was none.
func guard(notice func(string), place string, part func()) (whole bool) {
	defer func() {
		if !whole {
			notice(fmt.Sprintf("panic %s: %v\n%s", place, recover(), debug.Stack()))
		}
	}()
	part()
	return true
}

// fail settles with -EIO the units of c, of which nothing is under way.
func (b *Batch) fail(c claim) {
	for ; c.from < c.to; c.from = b.after(c.from) {
		b.settle(c.from, -int64(syscall.EIO), nil)
	}
}
