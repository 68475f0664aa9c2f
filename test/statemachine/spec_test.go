package statemachine

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"libphoenix/core"
)

// step is what a call of a crowd does at one instant. Calls that wait in
// between have two.
type step struct {
	do     action
	dev    int
	addr   core.DevAddr
	n      uint64        // bytes
	id     int64         // of the call
	host   core.HostAddr // beginRegister: the answer
	call   string        // refuse: what is refused
	answer answer        // what the call answered
}

type action uint8

const (
	doOpen action = iota
	doTransfer
	doRequest // a transfer in a batch: which error it was is not told
	refuse    // a call that changes nothing
	beginClose
	endClose
	beginRegister
	endRegister
	beginDeregister
	endDeregister
)

func (s step) as(do action) step {
	s.do = do
	return s
}

func (s step) String() string {
	name := [...]string{"open", "transfer", "request", "refuse " + s.call, "begin close", "end close", "begin register", "end register", "begin deregister", "end deregister"}[s.do]
	return fmt.Sprintf("%s: device %d [%#x, +%#x) call %d: %v %#x", name, s.dev, s.addr, s.n, s.id, s.answer, s.host)
}

// place is one page of a device as a start of ranges, in a state that can be
// compared with ==.
type place struct {
	area
	by int64 // the call that makes it or takes it down
}

// state is one device. The zero value is a closed one.
type state struct {
	phase  phase
	opens  int
	by     int64 // the last close
	places [pages]place
}

// spec is the contract as porcupine checks it, device by device: nothing that a
// call does to one depends on another.
func spec() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, crowdDevices)
			for _, o := range history {
				dev := o.Input.(step).dev
				parts[dev] = append(parts[dev], o)
			}
			return parts
		},
		Init: func() any { return state{} },
		Step: func(before, input, _ any) (bool, any) {
			s := before.(state)
			ok := s.take(input.(step))
			return ok, s
		},
	}
}

// ready says why calls are refused; success: they are not.
func (d *state) ready() answer {
	switch d.phase {
	case live:
		return answer{}
	case draining:
		return closing()
	default:
		return notOpen()
	}
}

// take makes a step; false: it could not have been made, or not so answered.
func (d *state) take(s step) bool {
	switch s.do {
	case doOpen:
		if d.phase == draining {
			return s.answer == busy()
		}
		d.phase = live
		d.opens++
		return s.answer.ok()
	case doTransfer:
		return s.answer == d.transfer(s.addr, s.n)
	case doRequest:
		return s.answer.ok() == d.transfer(s.addr, s.n).ok()
	case refuse:
		return s.answer == d.refusal(s)
	case beginClose:
		if d.phase != live {
			return false
		}
		if d.opens--; d.opens == 0 {
			d.phase, d.by = draining, s.id
		}
		return true
	case endClose:
		return d.endClose(s)
	default:
		return d.change(s)
	}
}

// endClose: nothing may be inside any more.
func (d *state) endClose(s step) bool {
	if d.phase != draining || d.by != s.id {
		return s.answer.ok()
	}
	said := answer{}
	for i := range d.places {
		p := &d.places[i]
		if p.phase == making || p.phase == draining {
			return false
		}
		if a := p.takeDown(); p.refs > 0 && said.ok() {
			said = a
		}
	}
	*d = state{}
	return said == s.answer
}

// at is the place where ranges at addr begin.
func (d *state) at(addr core.DevAddr) *place {
	for i := range d.places {
		if pageOf(i) == addr {
			return &d.places[i]
		}
	}
	panic("statemachine: no range begins there")
}

func (p *place) exactly(s step) bool { return p.phase != gone && p.n == s.n }

// transfer is where a transfer goes, or why not.
func (d *state) transfer(buf core.DevAddr, n uint64) answer {
	if a := d.ready(); !a.ok() {
		return a
	}
	for _, p := range d.places {
		switch {
		case p.phase == gone || !p.holds(buf):
		case n > p.n-uint64(buf-p.addr):
			return outside()
		case p.phase != live:
			return removed()
		default:
			return answer{}
		}
	}
	return unregistered()
}

// refusal is what a register or deregister that changes nothing answers, or a
// close; success: it would change something.
func (d *state) refusal(s step) answer {
	if s.call == "close" {
		if d.phase != live {
			return notOpen()
		}
		return answer{}
	}
	if a := d.ready(); !a.ok() {
		return a
	}
	p := d.at(s.addr)
	if s.call == "register" {
		if p.exactly(s) && p.phase != stuck || !d.meets(s.addr, s.n) {
			return answer{}
		}
		return overlap()
	}
	switch {
	case p.phase != live && p.phase != stuck:
		return unknown()
	case p.n != s.n:
		return wrongLength()
	}
	return answer{}
}

func (d *state) meets(addr core.DevAddr, n uint64) bool {
	for _, p := range d.places {
		if p.phase != gone && addr < p.addr+core.DevAddr(p.n) && p.addr < addr+core.DevAddr(n) {
			return true
		}
	}
	return false
}

// change makes a step of a register or deregister that succeeds or reached the
// kernel. The end of one that counted a reference changes nothing.
func (d *state) change(s step) bool {
	p := d.at(s.addr)
	mine := p.by == s.id
	switch s.do {
	case beginRegister:
		if d.phase != live {
			return false
		}
		if p.exactly(s) && p.phase == live {
			p.refs++
			return p.host == s.host
		}
		if d.meets(s.addr, s.n) {
			return false
		}
		*p = place{area: area{addr: s.addr, n: s.n, host: s.host, phase: making, refs: 1}, by: s.id}
	case endRegister:
		if mine && p.phase == making {
			p.phase, p.by = live, 0
		}
	case beginDeregister:
		if d.phase != live || !d.refusal(s.as(refuse)).ok() {
			return false
		}
		if p.refs > 1 {
			p.refs--
			return true
		}
		p.phase, p.by = draining, s.id
	case endDeregister:
		if !mine || p.phase != draining {
			return s.answer.ok()
		}
		p.by = 0
		if s.answer != p.takeDown() {
			return false
		}
		if p.phase == gone {
			*p = place{}
		}
	}
	return true
}
