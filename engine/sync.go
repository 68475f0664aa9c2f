package engine

// NewSync builds the engine that uses nothing but pread64 and pwrite64: the
// calling thread and, for larger batches, the helpers claim the transfers of a
// batch and do them one by one. It starts no thread before the first need.
func NewSync(cfg Config) Engine {
	m := newMachine(cfg)
	m.lanes = syncTransport{&syncLane{io: m.io, notice: m.notice}}
	return m
}
