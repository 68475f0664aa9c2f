package core

import (
	"strconv"
	"syscall"

	"libphoenix/engine"
)

// tellFailures reports the requests of a batch that moved less than they
// should. Called while their gates are held, so that the registrations and, as
// a rule, the descriptors are still there to be looked at.
func (l *Library) tellFailures(call string, ops []engine.Op) {
	if !l.logs(LevelError) {
		return
	}
	short := l.logs(LevelDebug)
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Result == int64(op.Len):
		case op.Result < 0:
			l.tellFailed(call, op)
		case short:
			l.log.Event(Short(l.eventOf(call, op), op.Result, 0))
		}
	}
}

func (l *Library) tellFailed(call string, op *engine.Op) {
	e := l.eventOf(call, op)
	e.Level, e.Errno = LevelError, syscall.Errno(-op.Result)
	e.Reason = e.Errno.Error()
	if e.Errno == syscall.EINVAL {
		if why := ExplainEINVAL(op.FD, uint64(op.Addr), op.Len, op.Off); why != "" {
			e.Reason = why
		}
	}
	l.log.Event(e)
}

// eventOf describes a request as the application knows it.
func (l *Library) eventOf(call string, op *engine.Op) Event {
	e := Event{Call: call, Device: -1, Addr: uint64(op.Addr), Len: op.Len, Offset: op.Off, FD: op.FD}
	if op.Group != 0 {
		r := l.regs.at(op.Group - 1)
		e.Device, e.Addr = r.dev.id, uint64(r.addr)+uint64(op.Addr-r.host)
	}
	return e
}

// Short is e as the event of a transfer that moved fewer bytes than it was asked
// for, and yet did not fail. errno: an error that came after progress.
func Short(e Event, moved int64, errno syscall.Errno) Event {
	e.Level, e.Errno = LevelDebug, errno
	e.Reason = "end of file, or an error after progress: " + strconv.FormatInt(moved, 10) + " bytes moved"
	return e
}
