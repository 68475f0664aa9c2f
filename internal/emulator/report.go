package emulator

import (
	"fmt"
	"io"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxFaults is how many faults the summary tells in full; the rest is counted.
const maxFaults = 1000

// reporter writes lines to stderr and collects what is wrong.
type reporter struct {
	out   io.Writer // set by Run, then read-only
	trace bool      // set by Run, then read-only

	mu       sync.Mutex
	faults   []*Fault // the first maxFaults
	total    int      // all of them
	troubles []string // what kept the emulator from its work, each once
	maps     int      // successful MAPs
}

// event writes a line if the user wants to see each.
func (r *reporter) event(format string, args ...any) {
	if r.trace {
		r.line(format, args...)
	}
}

func (r *reporter) line(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "phx emulate: "+format+"\n", args...)
}

func (r *reporter) fault(f *Fault) {
	r.event("fault: %v", f)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total++; r.total <= maxFaults {
		r.faults = append(r.faults, f)
	}
}

// trouble keeps a sentence for the summary.
func (r *reporter) trouble(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.troubles {
		if t == text {
			return
		}
	}
	r.troubles = append(r.troubles, text)
}

func (r *reporter) mapped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.maps++
}

// summary writes what was wrong, or nothing, and returns how much it was.
func (r *reporter) summary() int {
	wrong := r.total + len(r.troubles)
	if wrong > 0 {
		r.line("%d wrong, %d registrations", wrong, r.maps)
	} else {
		r.event("nothing wrong, %d registrations", r.maps)
	}
	for _, f := range r.faults {
		r.line("%v", f)
	}
	if more := r.total - len(r.faults); more > 0 {
		r.line("and %d more", more)
	}
	for _, t := range r.troubles {
		r.line("%s", t)
	}
	return wrong
}

// outcome is errno for a trace line.
func outcome(errno syscall.Errno) string {
	if errno == 0 {
		return "ok"
	}
	return unix.ErrnoName(errno)
}
