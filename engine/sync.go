package engine

// NewSync builds the engine that does without io_uring: the calling thread and,
// for larger batches, the helpers claim the transfers of a batch and do them
// one by one with pread64 and pwrite64, or, those of O_DIRECT files, many at
// once with Linux AIO (aiopool.go). It starts no thread before the first need.
func NewSync(cfg Config) Engine {
	m := newMachine(cfg)
	m.lanes = newSyncTransport(cfg, m)
	return m
}
