package core

// Handle stands for an async batch between submit and wait. It is never 0 and
// always below 1<<56, so that the C border can add 8 bits of its own; it is a
// number to be looked up, never a pointer to be trusted.
//
//	bits 0..25   index of the batch in its table, plus 1
//	bits 26..55  how many handles that entry had before, modulo 2^30
type Handle uint64

const (
	handleIndexBits = 26
	handleIndexMask = 1<<handleIndexBits - 1
	handleGenMask   = 1<<30 - 1
)

// publish makes the handle of a batch; from here on any thread may claim it.
func (l *Library) publish(b *batch) Handle {
	b.generation++
	h := Handle(b.index+1) | Handle(b.generation&handleGenMask)<<handleIndexBits
	b.live.Store(uint64(h))
	return h
}

// claim takes the batch of a handle; nil: it is wild, or another call has it.
func (l *Library) claim(h Handle) *batch {
	index := uint32(h & handleIndexMask)
	if h == 0 || index == 0 {
		return nil
	}
	b := l.batches.find(index - 1)
	if b == nil || !b.live.CompareAndSwap(uint64(h), 0) {
		return nil
	}
	return b
}
