package statemachine

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"libphoenix/connectors"
	"libphoenix/core"
	"libphoenix/engine"
)

// hungAfter is when a call counts as hung. It decides nothing else.
const hungAfter = 30 * time.Second

// vendor is a connector of a made-up vendor with device nodes.
type vendor struct{}

func (vendor) Name() string     { return "FAKE" }
func (vendor) PageSize() uint64 { return page }
func (vendor) FindDevice(ordinal int) (int, error) {
	return ordinal % core.Devices, nil
}

var _ connectors.Connector = vendor{}

// machine is a library beside its model. Calls are made one at a time; while
// the kernel holds, those that must wait for I/O are left waiting.
type machine struct {
	k    *kernel
	l    *core.Library
	m    model
	live []*handle

	held   bool
	queued int     // async batches that wait for the kernel
	parked int     // single transfers likewise
	late   []*call // in the order in which they can end
}

// handle is an async batch that nobody has waited for.
type handle struct {
	h    core.Handle
	reqs []core.Request
	want []int64 // results
}

// call is one that waits for I/O on another thread.
type call struct {
	what string
	id   int           // device
	turn int           // calls of a lower turn end first
	done chan struct{} // closed when it is over
	want func(t *rapid.T)
}

func newMachine() *machine {
	k := newKernel()
	return &machine{k: k, l: newLibrary(k)}
}

func newLibrary(k *kernel) *core.Library {
	return core.New(core.Config{
		Connector: vendor{},
		OpenNode:  k.open,
		NewEngine: func() engine.Engine { return engine.NewSync(engine.Config{IO: k, Helpers: 2}) },
		IO:        k,
	})
}

// TestSequencesOfCalls: every call answers what the model says, whatever came
// before it and while others wait for I/O.
func TestSequencesOfCalls(t *testing.T) {
	check(t, 250, func(t *rapid.T) {
		s := newMachine()
		defer s.end(t)
		t.Repeat(map[string]func(*rapid.T){
			"":            s.audit,
			"open":        s.open,
			"close":       s.close,
			"register":    s.register,
			"register it": s.register,
			"deregister":  s.deregister,
			"transfer":    s.transfer,
			"transfer it": s.transfer,
			"run":         s.run,
			"submit":      s.submit,
			"flood":       s.flood,
			"wait":        s.wait,
			"bad handle":  s.badHandle,
			"hold":        s.hold,
			"release":     s.release,
		})
	})
}

// audit looks at the kernel's books.
func (s *machine) audit(t *rapid.T) { report(t, s.k.complaints(false)) }

func report(t rapid.TB, complaints []string) {
	t.Helper()
	if len(complaints) > 0 {
		t.Fatalf("the kernel complains: %q", complaints)
	}
}

// end lets everything go and looks for what was left. After a failure it only
// lets go: threads must not outlive the test.
func (s *machine) end(t *rapid.T) {
	if t.Failed() {
		s.k.release()
		return
	}
	s.release(t)
	for len(s.live) > 0 {
		s.settle(t, 0, true)
	}
	s.l.Shutdown()
	report(t, s.k.complaints(true))
}

// want compares the answer of a call.
func want(t *rapid.T, what string, got error, want answer) {
	t.Helper()
	if got := answerOf(got); got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// until waits for what another thread is sure to bring about.
func until(t *rapid.T, what string, cond func() bool) {
	t.Helper()
	for begin := time.Now(); !cond(); runtime.Gosched() {
		if time.Since(begin) > hungAfter {
			t.Fatalf("%s: not after %v", what, hungAfter)
		}
	}
}

// later runs f on a thread of its own; settle compares when it is over.
func (s *machine) later(what string, id, turn int, f func(), settle func(t *rapid.T)) {
	c := &call{what: what, id: id, turn: turn, done: make(chan struct{}), want: settle}
	go func() {
		defer close(c.done)
		f()
	}()
	at := 0
	for at < len(s.late) && s.late[at].turn <= turn {
		at++
	}
	s.late = append(s.late[:at], append([]*call{c}, s.late[at:]...)...)
}

// Turns of calls that wait.
const (
	turnTransfer = iota
	turnDeregister
	turnRegister
	turnClose
)

// hold begins a time in which transfers of fdHeld and fdParks wait.
func (s *machine) hold(t *rapid.T) {
	for !s.held && len(s.live) > 0 { // so that the count of queued ones is known
		s.settle(t, 0, true)
	}
	s.held = true
	s.k.hold()
}

// release ends it, and all that waited is compared.
func (s *machine) release(t *rapid.T) {
	s.k.release()
	for i := range s.m.devices {
		for _, a := range s.m.devices[i].areas {
			a.users = 0
		}
	}
	for _, c := range s.late {
		select {
		case <-c.done:
		case <-time.After(hungAfter):
			t.Fatalf("%s hangs", c.what)
		}
		c.want(t)
	}
	s.held, s.queued, s.parked, s.late = false, 0, 0, nil
}

// waiting is whether a call of that turn waits on a device.
func (s *machine) waiting(id, turn int) bool {
	for _, c := range s.late {
		if c.id == id && c.turn == turn {
			return true
		}
	}
	return false
}

// probe is what an empty read at addr answers.
func (s *machine) probe(id int, addr core.DevAddr) answer {
	_, err := s.l.Transfer(engine.Read, fdWhole, int32(id), addr, 0, 0, 0)
	return answerOf(err)
}

func describe(call string, id int, addr core.DevAddr, n uint64) string {
	return fmt.Sprintf("%s(%d, %#x, %#x)", call, id, addr, n)
}
