package core

import "libphoenix/engine"

// Submit queues a batch and returns a handle for Wait or Destroy. reqs is read
// now; unresolvable requests get their Result now, all others by Wait, and the
// array must stay allocated until then. An empty reqs gives a handle whose
// Wait answers 0.
//
// Errors: EBUSY engine.MaxAsync batches have I/O queued or running; ENOTSUP no
// helper thread could be started; ENOMEM. Nothing is written then.
func (l *Library) Submit(k engine.Kind, reqs []Request) (Handle, error) {
	b := l.takeBatch(submitCalls[k])
	if b == nil {
		return 0, errNoMemory
	}
	kept := false
	defer func() {
		if !kept {
			l.giveBatch(b)
		}
	}()
	if len(reqs) > 0 {
		if bad := l.enqueue(l.engine(), k, reqs, b); bad != nil {
			return 0, bad
		}
	}
	b.reqs = reqs
	kept = true
	return l.publish(b), nil
}

// enqueue resolves an async batch and hands it to the engine. Unless it
// succeeds the ticket is retired and every gate left.
func (l *Library) enqueue(eng engine.Engine, k engine.Kind, reqs []Request, b *batch) (bad *Error) {
	eng.Begin(&b.Batch, engine.Async)
	b.Kind = k
	begun, queued := true, false
	defer func() {
		if begun {
			eng.Abandon(&b.Batch)
		}
		if !queued {
			l.leaveGates(b.Ops)
		}
	}()
	if !l.arrays.take(b, len(reqs)) {
		return errNoMemory
	}
	l.resolve(reqs, b)
	if len(b.Ops) > 0 {
		begun = false
		b.Done = l.leaveDone
		if err := eng.Submit(&b.Batch); err != nil {
			return l.errs.of(errnoOf(err), ReasonSubmit)
		}
		queued = true
	}
	if b.unresolved > 0 {
		writeUnresolved(reqs, b.Ops) // the ops' Index stays put while the engine works on them
	}
	return nil
}

// asyncDone is Batch.Done: the I/O is over, so the gates are left here, on the
// helper, and not when somebody waits: submit, deregmem, wait in one thread
// must work.
func (l *Library) asyncDone(eb *engine.Batch) {
	defer l.leaveGates(eb.Ops)
	l.tellFailures(submitCalls[eb.Kind], eb.Ops)
}

// Wait waits for the I/O of a batch, writes its results on this thread and
// returns how many of its requests failed. The handle is spent.
//
// Errors: EINVAL (ReasonBadHandle), at once.
func (l *Library) Wait(h Handle) (failed int, err error) { return l.finish(h, true) }

// Destroy waits for the I/O of a batch and writes nothing into the caller's
// array. The handle is spent. Errors as for Wait.
func (l *Library) Destroy(h Handle) error {
	_, err := l.finish(h, false)
	return err
}

func (l *Library) finish(h Handle, write bool) (failed int, err error) {
	b := l.claim(h)
	if b == nil {
		return 0, errBadHandle
	}
	if len(b.Ops) > 0 {
		// Should the engine panic here, b is lost on purpose: its helpers
		// may still write to it.
		l.engine().Wait(&b.Batch)
	}
	defer l.giveBatch(b)
	if !write {
		return 0, nil
	}
	return b.unresolved + writeResults(b.reqs, b.Ops), nil
}
