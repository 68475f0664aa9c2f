package connectors

// Stager is the capability to reach device memory by copies, on machines
// without the kernel module (docs/abi.md, "Host staging").
type Stager interface {
	// StageDevice answers nil if the vendor's ordinal names a device that can
	// be staged. It creates nothing on the device. ENODEV: no such device, no
	// vendor library, or one that does not start.
	StageDevice(ordinal int) error

	// CheckMemory answers nil if all of [addr, addr+lenBytes) is memory of
	// that device, else an error with EFAULT. It needs no context and creates
	// none. ENODEV as for StageDevice.
	CheckMemory(ordinal int, addr DevAddr, lenBytes uint64) error

	// OpenStream makes a way to copy, for the calling thread alone: the caller
	// has locked its OS thread and makes every call of the stream on it. What
	// the device needs first (a context) is made here. ENODEV as for
	// StageDevice; else what the vendor refused.
	OpenStream(ordinal int) (Stream, error)
}

// Stream copies between host and device memory in the order of its calls.
// Every call comes from the thread that opened it.
type Stream interface {
	// Alloc returns lenBytes of host memory, aligned to a page, that the
	// device can copy from and to at full speed, whichever stream asks; each
	// of its pages was touched. ENOMEM. Free returns it, with no copy under way.
	// It may go away with a context that the program destroys: where the
	// connector has Liveness, that is asked about.
	Alloc(lenBytes uint64) (uintptr, error)
	Free(host uintptr, lenBytes uint64)

	// Copy begins a copy to the device, or from it. At most StreamDepth copies
	// are begun and not finished. An error means that nothing was begun.
	Copy(toDevice bool, dev DevAddr, host uintptr, lenBytes uint64) error

	// Finished is how many of all copies begun so far are over, in their
	// order; with wait it waits until one more is over than at the last call.
	// An error is that of a copy or of the device: all copies begun are over.
	Finished(wait bool) (uint64, error)

	// Close gives back what OpenStream made. No copy is under way.
	Close()
}

// StreamDepth is how many copies a Stream has under way at most.
const StreamDepth = 64
