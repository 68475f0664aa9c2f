package engine

// NewSyncAIO is an engine of NewSync that takes files without O_DIRECT, and
// unaligned transfers, for fit for AIO as well.
func NewSyncAIO(cfg Config) Engine {
	m := newMachine(cfg)
	t := newSyncTransport(cfg, m)
	t.flags, t.grain = 0, 1
	m.lanes = t
	return m
}

// LinuxAIO is the real AIO.
func LinuxAIO() AIO { return linuxAIO{} }

// AIODepth is how many transfers of a context fly at once.
const AIODepth = aioDepth
