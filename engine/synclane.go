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
			b.perform(l.io, c.from)
		}
	}) {
		b.fail(c)
	}
}
