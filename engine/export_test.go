package engine

import "sync/atomic"

// scarce is a transport with deep lanes that often has none for a caller, as
// one whose rings are all lent.
type scarce struct {
	*syncTransport
	every int64 // lends on each every-th request; 0: never
	asked *atomic.Int64
}

func (s scarce) deep(*Batch) bool { return true }

func (s scarce) quantum() int64 { return claimNs }

func (s scarce) caller() lane {
	if n := s.asked.Add(1); s.every > 0 && n%s.every == 0 {
		return s.plain
	}
	return nil
}

// NewScarce is an engine over a scarce transport.
func NewScarce(cfg Config, every int64) Engine {
	m := newMachine(cfg)
	m.lanes = scarce{newSyncTransport(cfg, m), every, new(atomic.Int64)}
	return m
}
