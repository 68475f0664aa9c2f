package engine

// lane is one participant's way to the kernel: for the sync engine the system
// calls themselves, for io_uring a ring. One thread at a time uses it.
type lane interface {
	// run claims units of b until none is left, performs and settles them,
	// and returns when the kernel has finished with all of them. It neither
	// panics nor leaves a claimed unit unsettled: after a contained panic the
	// unfinished ones get -EIO.
	run(b *Batch)
}

// transport is what makes one engine differ from another: where its lanes
// come from. Its methods may be called from any thread and do not wait.
type transport interface {
	name() string

	// caller lends a lane to a thread inside Run or Wait, for one batch; nil:
	// none is free, and the thread leaves the batch to the helpers.
	caller() lane
	// release takes back a lane that caller lent.
	release(lane)

	// helper makes the lane of a helper thread, on that thread; retire ends
	// it there.
	helper() lane
	retire(lane)

	// close gives back what the callers' lanes hold. None is lent any more.
	close()

	// quantum bounds one claim, in ns of estimated work, at most claimNs.
	quantum() int64
	// deep reports whether one lane keeps many transfers of b going at once.
	// If not, a batch whose first transfer turns out slow is worth help.
	deep(b *Batch) bool

	// foresee asks, before others take part in b, what each of them would ask
	// about its first file.
	foresee(b *Batch)
}
