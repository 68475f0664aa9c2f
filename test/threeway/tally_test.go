package threeway

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
)

// tally counts requests by outcome, to show that all outcomes occur.
type tally map[string]int

func (c tally) add(ops []engine.Op) {
	for i := range ops {
		c[outcome(&ops[i])]++
	}
}

func outcome(op *engine.Op) string {
	switch {
	case op.Result < 0:
		return unix.ErrnoName(syscall.Errno(-op.Result))
	case op.Len == 0:
		return "empty"
	case op.Result == 0:
		return "nothing"
	case op.Result == int64(op.Len):
		return "full"
	default:
		return "short"
	}
}

func (c tally) String() string {
	total, parts := 0, []string{}
	for name, n := range c {
		total += n
		parts = append(parts, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(parts)
	return fmt.Sprintf("%d requests (%s)", total, strings.Join(parts, ", "))
}
