package core

// Open opens device id for this process, or counts one more user of it. It
// waits for another thread's open(2) of the same device.
//
// Errors: EINVAL bad id; EBUSY (ReasonClosing) the last close is in progress,
// try again; ReasonOpenNode with open(2)'s errno.
func (l *Library) Open(id int) error {
	d, bad := l.device(id)
	if bad != nil {
		return bad
	}
	l.watchValve(callOpen, id)
	d.mu.Lock()
	for d.state == deviceOpening {
		d.changed.Wait()
	}
	switch d.state {
	case deviceOpen:
		if b, ok := d.node.(*borrowedNode); ok && b.mine.Load() == nil {
			d.calls++ // the last close waits for it
			d.mu.Unlock()
			return l.openBorrowed(d, b)
		}
		l.countOpensLocked(d, d.opens+1)
		d.mu.Unlock()
		return nil
	case deviceClosing:
		d.mu.Unlock()
		return errClosingOpen
	}
	d.state = deviceOpening
	d.mu.Unlock()

	var node Node
	defer func() {
		d.mu.Lock()
		if d.node = node; node != nil {
			d.state = deviceOpen
			l.countOpensLocked(d, 1)
		} else {
			d.state = deviceClosed
		}
		d.changed.Broadcast()
		d.mu.Unlock()
	}()
	opened, err := l.openDevice(id)
	if err != nil {
		return l.detailed(l.errs.of(errnoOf(err), ReasonOpenNode), err)
	}
	node = opened
	l.tellDevice(LevelInfo, callOpen, d.id, "device opened")
	return nil
}

// openBorrowed opens a node of this process's own for a device that only the
// parent has open so far, and counts one more user of it.
func (l *Library) openBorrowed(d *device, b *borrowedNode) error {
	if err := d.makeOwn(b); err != nil {
		return l.detailed(l.errs.of(errnoOf(err), ReasonOpenNode), err)
	}
	return l.Open(int(d.id))
}

// makeOwn is a call that Open has counted in.
func (d *device) makeOwn(b *borrowedNode) error {
	defer d.end()
	_, err := b.own()
	return err
}

// countOpensLocked changes d.opens; a forked child reads it in the ledger.
func (l *Library) countOpensLocked(d *device, opens int) {
	d.opens = opens
	l.ledger.Opened(int(d.id), opens)
}

// Close drops one user of device id. The last one waits for the calls and the
// I/O inside, takes every registration down and closes the node; meanwhile the
// device refuses everything.
//
// Errors: EINVAL bad id; ENODEV not open; ReasonUnmap, ReasonMunmap or
// ReasonCloseNode with the kernel's errno: the first thing that failed, the
// rest is done and the device is closed.
func (l *Library) Close(id int) error {
	d, bad := l.device(id)
	if bad != nil {
		return bad
	}
	d.mu.Lock()
	if d.state != deviceOpen {
		d.mu.Unlock()
		return errNotOpen
	}
	if d.opens > 1 {
		l.countOpensLocked(d, d.opens-1)
		d.mu.Unlock()
		return nil
	}
	return l.closeLast(d)
}

// closeLast takes d.mu locked and gives it back unlocked.
func (l *Library) closeLast(d *device) error {
	d.state = deviceClosing
	l.countOpensLocked(d, 0)
	d.changed.Broadcast() // a regmem that waits for a range gives up
	for d.calls > 0 {
		d.changed.Wait()
	}
	d.mu.Unlock()

	closed := false
	defer func() {
		d.mu.Lock()
		if closed {
			d.state, d.node = deviceClosed, nil
		} else { // a panic: the close did not happen, the caller may try again
			d.state = deviceOpen
			l.countOpensLocked(d, 1)
		}
		d.changed.Broadcast()
		d.mu.Unlock()
	}()
	failed := l.retireAll(d)
	if err := d.node.Close(); err != nil && failed == nil {
		failed = l.errs.of(errnoOf(err), ReasonCloseNode)
	}
	closed = true
	l.tellDevice(LevelInfo, callClose, d.id, "device closed")
	if failed != nil {
		return failed
	}
	return nil
}

// retireAll takes down every registration of a closing device that has no
// call inside: nobody else changes the table. It returns the first failure.
func (l *Library) retireAll(d *device) (failed *Error) {
	for {
		d.mu.RLock()
		r := d.ranges.first()
		d.mu.RUnlock()
		if r == nil {
			return failed
		}
		if err := l.retireAnyway(r); err != nil && failed == nil {
			failed = err
		}
	}
}
