package engine

// syncLane is plain system calls. It keeps no state, so all threads use one.
type syncLane struct {
	io     IO
	notice func(string)
}

func (l *syncLane) run(b *Batch) {
	for {
		c, ok := b.claim()
		if !ok {
			return
		}
		l.perform(b, c)
	}
}

// perform does the units of c in order. A panic below (ours or the IO's) ends
// the claim: its unfinished units get -EIO.
func (l *syncLane) perform(b *Batch, c claim) {
	if !guard(l.notice, "during a transfer", func() {
		for ; c.from < c.to; c.from = b.after(c.from) {
			op := &b.Ops[c.from>>32]
			start, n := op.extent(uint32(c.from))
			if op.stopped(start) {
				continue
			}
			op.settle(start, n, transfer(l.io, b.Kind, op.FD, op.Addr+HostAddr(start), n, op.Off+int64(start)))
		}
	}) {
		b.fail(c)
	}
}
