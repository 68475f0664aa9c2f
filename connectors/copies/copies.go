// Package copies makes a connectors.Stream of what GPU vendors have: a stream,
// and events that say how far it has come.
package copies

import "libphoenix/connectors"

// Driver is one stream of a vendor with connectors.StreamDepth events. Every
// call comes from one thread.
type Driver interface {
	Alloc(lenBytes uint64) (uintptr, error)
	Free(host uintptr)

	// Copy queues a copy. An error means that none was queued.
	Copy(toDevice bool, dev connectors.DevAddr, host uintptr, lenBytes uint64) error
	// Record lets an event stand for all that is queued so far.
	Record(event int) error
	// Over says whether what an event stands for is done; Await waits for it.
	Over(event int) (bool, error)
	Await(event int) error
	// Drain returns when nothing queued runs any more, or the device is lost.
	Drain()
	Close()
}

// stream counts copies; copy number i, from 0, has event i modulo StreamDepth.
type stream struct {
	Driver
	begun, over uint64
}

// New takes d, which is Close's to close.
func New(d Driver) connectors.Stream { return &stream{Driver: d} }

// Free implements connectors.Stream.
func (s *stream) Free(host uintptr, _ uint64) { s.Driver.Free(host) }

// Copy implements connectors.Stream.
func (s *stream) Copy(toDevice bool, dev connectors.DevAddr, host uintptr, lenBytes uint64) error {
	if err := s.Driver.Copy(toDevice, dev, host, lenBytes); err != nil {
		return err
	}
	if err := s.Record(int(s.begun % connectors.StreamDepth)); err != nil {
		s.Drain() // the copy is queued, and nobody could tell when it is over
		return err
	}
	s.begun++
	return nil
}

// Finished implements connectors.Stream.
func (s *stream) Finished(wait bool) (uint64, error) {
	for ; s.over < s.begun; s.over++ {
		event := int(s.over % connectors.StreamDepth)
		done, err := wait, error(nil)
		if wait {
			err = s.Await(event)
		} else {
			done, err = s.Over(event)
		}
		if err != nil {
			s.Drain()
			return s.over, err
		}
		if !done {
			break
		}
		wait = false
	}
	return s.over, nil
}
