package core

import "syscall"

// Level is how much somebody wants to hear (PHXFS_LOG).
type Level uint8

// Levels, from the least to the most.
const (
	LevelError Level = iota // a request that failed
	LevelWarn               // something the caller should know: memory freed before deregmem
	LevelInfo               // a device opened, closed
	LevelDebug              // registrations, short reads at the end of a file
)

// Event is one line of the log. Core reports what no return value can: each
// failing request of a batch, and turns in the life of a device or a
// registration. The failing call itself is reported by who returns it.
type Event struct {
	Level  Level
	Call   string        // the C function
	Device int32         // phxfs index; -1: a CPU buffer
	Addr   uint64        // address as the application passed it, with its buffer offset; 0: none
	Len    uint64        // bytes
	Offset int64         // file offset in bytes
	FD     int32         // -1: none
	Errno  syscall.Errno // 0: not a failure
	Reason string        // English, without a full stop
}

// Logger takes events. Its methods may be called from any thread, helper
// threads included, with gates held but no lock; Event may block for as long
// as writing a line takes.
type Logger interface {
	Enabled(Level) bool
	Event(Event)
}

// C functions that core names in events.
const (
	callOpen     = "phxfs_open"
	callClose    = "phxfs_close"
	callRegmem   = "phxfs_regmem"
	callDeregmem = "phxfs_deregmem"
)

// transferCalls[kind] and the others are indexed by engine.Kind.
var (
	transferCalls = [2]string{"phxfs_read", "phxfs_write"}
	runCalls      = [2]string{"phxfs_read_batch", "phxfs_write_batch"}
	submitCalls   = [2]string{"phxfs_batch_submit_read", "phxfs_batch_submit_write"}
)

func (l *Library) logs(at Level) bool { return l.log != nil && l.log.Enabled(at) }

// tellDevice reports a turn in the life of a device.
func (l *Library) tellDevice(at Level, call string, id int32, reason string) {
	if l.logs(at) {
		l.log.Event(Event{Level: at, Call: call, Device: id, FD: -1, Reason: reason})
	}
}

// tellRange reports a turn in the life of a registration that the caller owns.
func (l *Library) tellRange(at Level, call string, r *registration, errno syscall.Errno, reason string) {
	if l.logs(at) {
		l.log.Event(Event{Level: at, Call: call, Device: r.dev.id, Addr: uint64(r.addr), Len: r.lenBytes,
			FD: -1, Errno: errno, Reason: reason})
	}
}
