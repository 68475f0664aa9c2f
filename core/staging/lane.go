package staging

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	"libphoenix/connectors"
	"libphoenix/internal/futex"
)

// lane is a thread that copies. Whatever has no note is that thread's own.
type lane struct {
	d       *Device              // set by New, then read-only
	started atomic.Bool          // the thread was started
	inbox   atomic.Pointer[slot] // jobs, the last one first
	asleep  atomic.Uint32        // 1: the thread sleeps, or is about to
	load    atomic.Int32         // jobs given to the lane and not over; a hint
	stop    slot                 // Close's

	stream      connectors.Stream // nil: none yet
	first, last *slot             // jobs taken out of inbox, in order
	current     *slot             // the job that is being begun
	begun       [connectors.StreamDepth]*slot
	oldest, n   int    // of the ring begun: copies under way
	finished    uint64 // copies of stream that are over
	epoch       uint32 // Device.lost when stream was made
	suspect     bool   // stream refused a job for no fault of the address or want of memory: no more jobs for it
	stopped     bool
}

// put gives a job to the lane. Any thread.
func (l *lane) put(s *slot) {
	l.load.Add(1)
	for {
		top := l.inbox.Load()
		s.next = top
		if l.inbox.CompareAndSwap(top, s) {
			break
		}
	}
	if l.asleep.Swap(0) == 1 {
		futex.Wake(&l.asleep, 1)
	}
	if !l.started.Load() && l.started.CompareAndSwap(false, true) {
		l.d.running.Add(1)
		go l.run()
	}
}

// run is the life of the thread; a stop job ends it. The thread dies with it:
// the vendor's context is never current on a thread that is not ours.
func (l *lane) run() {
	defer l.d.running.Done()
	runtime.LockOSThread()
	for !l.stopped {
		l.attempt()
	}
	if l.stream != nil {
		l.stream.Close()
	}
}

// attempt works until the stop job or a panic, which costs the jobs it has.
func (l *lane) attempt() {
	defer func() {
		if l.stopped {
			return
		}
		reason := recover()
		l.abandon()
		if l.d.cfg.Notice != nil {
			l.d.cfg.Notice(fmt.Sprintf("panic in a staging thread: %v\n%s", reason, debug.Stack()))
		}
	}()
	for !l.stopped {
		l.fetch()
		if l.stream != nil && l.epoch != l.d.lost.Load() {
			l.suspect = true
		}
		switch {
		case l.suspect && l.n == 0:
			l.reopen()
		case l.first != nil && l.n < len(l.begun) && !l.suspect:
			l.begin()
		case l.n > 0:
			l.reap()
		default:
			l.rest()
		}
	}
}

// fetch moves what is in the inbox behind the jobs that are there.
func (l *lane) fetch() {
	if l.inbox.Load() == nil {
		return
	}
	var first, last *slot
	for s := l.inbox.Swap(nil); s != nil; {
		next := s.next
		s.next = first
		if first = s; last == nil {
			last = s
		}
		s = next
	}
	if l.first == nil {
		l.first = first
	} else {
		l.last.next = first
	}
	l.last = last
}

// begin does the first job, or begins it if it is a copy.
func (l *lane) begin() {
	s := l.first
	l.first, l.current = s.next, s
	if s.job == stop {
		l.current, l.stopped = nil, true
		return
	}
	errno := l.open()
	switch {
	case errno != 0:
	case s.job == furnish:
		var err error
		if s.mem, err = l.stream.Alloc(slotBytes); err == nil {
			s.epoch = l.epoch
			s.note()
		}
		errno = errnoOf(err)
	case s.job == release:
		if s.alive() {
			l.stream.Free(s.mem, slotBytes)
		}
		s.mem = 0
	case !s.alive():
		s.d.lost.CompareAndSwap(s.epoch, s.epoch+1)
		errno = syscall.EIO
	default:
		at := uintptr(s.Place(s.dev))
		if errno = errnoOf(l.stream.Copy(s.job == toDevice, connectors.DevAddr(s.dev), at, s.len)); errno == 0 {
			l.begun[(l.oldest+l.n)%len(l.begun)] = s
			l.n++
			l.current = nil
			return
		}
	}
	l.current = nil
	if errno != 0 && errno != syscall.EFAULT && errno != syscall.ENOMEM {
		l.suspect = true
	}
	l.over(s, errno)
}

// open makes the stream if there is none.
func (l *lane) open() syscall.Errno {
	if l.stream != nil {
		return 0
	}
	epoch := l.d.lost.Load()
	stream, err := l.d.cfg.Stager.OpenStream(l.d.cfg.Ordinal)
	if err != nil {
		return errnoOf(err)
	}
	l.stream, l.epoch, l.finished = stream, epoch, 0
	return 0
}

// reap ends the copies that are over. If none is it looks again for a while,
// unless there is something to begin, and then waits for one.
func (l *lane) reap() {
	finished, err := l.stream.Finished(false)
	if finished == l.finished && err == nil {
		if l.d.spin > 0 {
			spin(copySpin, func() bool {
				finished, err = l.stream.Finished(false)
				return finished != l.finished || err != nil || l.inbox.Load() != nil
			})
		}
		if finished == l.finished && err == nil && l.inbox.Load() == nil {
			finished, err = l.stream.Finished(true)
		}
	}
	for ; l.n > 0 && l.finished < finished; l.finished++ {
		l.end(0)
	}
	if err != nil {
		for l.n > 0 {
			l.end(errnoOf(err))
		}
		l.reopen()
	}
}

// end ends the oldest copy.
func (l *lane) end(errno syscall.Errno) {
	s := l.begun[l.oldest]
	l.begun[l.oldest] = nil
	l.oldest = (l.oldest + 1) % len(l.begun)
	l.n--
	l.over(s, errno)
}

// over lets the owner of a job go on.
func (l *lane) over(s *slot, errno syscall.Errno) {
	l.load.Add(-1)
	s.end(errno)
}

// reopen drops a stream that failed, with no copy under way; the next job makes
// another.
func (l *lane) reopen() {
	l.suspect = false
	if stream := l.stream; stream != nil {
		l.stream = nil
		stream.Close()
	}
}

// rest sleeps until there is a job.
func (l *lane) rest() {
	if l.d.spin > 0 {
		spin(l.d.spin, func() bool { return l.inbox.Load() != nil })
	}
	l.asleep.Store(1)
	for l.inbox.Load() == nil && l.asleep.Load() == 1 {
		futex.Wait(&l.asleep, 1)
	}
	l.asleep.Store(0)
}

// abandon fails all jobs of the lane after a panic. The memory is others' next,
// so copies under way are waited for; a stream that cannot wait is dropped.
func (l *lane) abandon() {
	if l.stream != nil {
		for l.n > 0 && l.settled() {
		}
	}
	for l.n > 0 {
		l.end(syscall.EIO)
	}
	if s := l.current; s != nil {
		l.current = nil
		l.over(s, syscall.EIO)
	}
	for l.first != nil {
		s := l.first
		if s.job == stop {
			break
		}
		l.first = s.next
		l.over(s, syscall.EIO)
	}
}

// settled waits for one copy more; false: the stream failed, or panicked again.
func (l *lane) settled() (ok bool) {
	defer func() {
		if !ok {
			_ = recover()
			l.stream = nil
		}
	}()
	finished, err := l.stream.Finished(true)
	for ; l.n > 0 && l.finished < finished; l.finished++ {
		l.end(syscall.EIO)
	}
	return err == nil
}

// errnoOf is the errno that a connector's error carries, EIO without one.
func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errno != 0 {
		return errno
	}
	return syscall.EIO
}
