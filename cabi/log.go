package main

// #include "bridge.h"
import "C"

import (
	"errors"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"libphoenix/core"
)

// logger is the core.Logger of the product: it formats events, the shim writes
// them (log.c). It allocates nothing per line.
type logger struct {
	state *C.struct_phx_state // set by newLogger, then read-only
	level int                 // PHX_LOG_*, read-only

	mu  sync.Mutex
	buf []byte // protected by mu; the line being formatted
}

// lineMax bounds a line in bytes; only the stack of a panic comes near it.
const lineMax = 16 << 10

func newLogger(s *C.struct_phx_state, level int) *logger {
	return &logger{state: s, level: level, buf: make([]byte, 0, lineMax)}
}

// cLevel is PHX_LOG_* for a core level.
func cLevel(l core.Level) int { return int(l) + C.PHX_LOG_ERROR }

// Enabled implements core.Logger.
func (l *logger) Enabled(at core.Level) bool { return cLevel(at) <= l.level }

// Event implements core.Logger.
func (l *logger) Event(e core.Event) {
	if !l.Enabled(e.Level) {
		return
	}
	defer containLog()
	l.mu.Lock()
	defer l.mu.Unlock()
	inject(C.PHX_IN_LOG)
	l.buf = appendEvent(l.buf[:0], e)
	l.writeLocked(e.Level)
}

// note writes a line that is about no address or file.
func (l *logger) note(at core.Level, call, reason string) {
	if !l.Enabled(at) {
		return
	}
	defer containLog()
	l.mu.Lock()
	defer l.mu.Unlock()
	inject(C.PHX_IN_LOG)
	l.buf = appendReason(append(append(l.buf[:0], "call="...), call...), reason)
	l.writeLocked(at)
}

func (l *logger) writeLocked(at core.Level) {
	n := min(len(l.buf), lineMax)
	C.phx_log_line(l.state, C.int(cLevel(at)), (*C.char)(unsafe.Pointer(unsafe.SliceData(l.buf))), C.size_t(n))
}

func appendEvent(b []byte, e core.Event) []byte {
	b = append(append(b, "call="...), e.Call...)
	b = strconv.AppendInt(append(b, " device="...), int64(e.Device), 10)
	b = strconv.AppendUint(append(b, " address=0x"...), e.Addr, 16)
	b = strconv.AppendInt(append(b, " length="...), int64(e.Len), 10)
	b = strconv.AppendInt(append(b, " offset="...), e.Offset, 10)
	b = strconv.AppendInt(append(b, " fd="...), int64(e.FD), 10)
	if e.Errno != 0 {
		b = append(b, " errno="...)
		b = appendErrno(b, e.Errno)
	}
	return appendReason(b, e.Reason)
}

func appendErrno(b []byte, errno syscall.Errno) []byte {
	if name := unix.ErrnoName(errno); name != "" {
		return append(b, name...)
	}
	return strconv.AppendInt(b, int64(errno), 10)
}

func appendReason(b []byte, reason string) []byte {
	return strconv.AppendQuote(append(b, " reason="...), reason)
}

// failed logs the failure of a call and gives its error back. EINVAL from the
// kernel is explained: under O_DIRECT it is about alignment.
func failed(e core.Event, err error) error {
	if !process.log.Enabled(core.LevelError) {
		return err
	}
	_, e.Errno = classify(err)
	e.Reason = reasonOf(e, err)
	process.log.Event(e)
	return err
}

// reasonOf is the reason as a clause: core's own, core's with what another
// room added, or the kernel's.
func reasonOf(e core.Event, err error) string {
	ce, ok := errors.AsType[*core.Error](err)
	switch {
	case ok && ce.Why != core.ReasonKernel && err == error(ce):
		return ce.Why.String()
	case ok && ce.Why != core.ReasonKernel:
		return err.Error()
	case e.Errno == syscall.EINVAL && e.FD >= 0:
		if why := core.ExplainEINVAL(e.FD, e.Addr, e.Len, e.Offset); why != "" {
			return why
		}
	}
	return e.Errno.Error()
}
