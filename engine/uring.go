package engine

// NewUring builds the engine that moves data through io_uring: the calling
// thread and, for larger batches, the helpers each keep many transfers going
// on a ring of their own (uringtransport.go). A batch of one small op takes
// the path of NewSync. It starts no thread before the first need.
//
// It makes one ring and reads with it; the error says why io_uring cannot be
// used here, and wraps a syscall.Errno.
func NewUring(cfg Config) (Engine, error) {
	m := newMachine(cfg)
	t := newUringTransport(cfg, m)
	m.lanes = t
	if err := t.try(); err != nil {
		t.close()
		return nil, err
	}
	t.notice = m.notice
	return m, nil
}
