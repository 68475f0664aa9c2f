// Package core is the library behind the C border: devices, registrations,
// batches and their lifetimes. docs/abi.md is the contract it keeps.
//
// # Words
//
//	device        one of eight phxfs devices; open and close are counted
//	device address, DevAddr   where the application sees device memory
//	host address, HostAddr    where this process's system calls reach it
//	registration  a range of device memory mapped to host addresses by regmem
//	reference     one regmem of an exact duplicate; each needs its deregmem
//	pin           what the driver holds for a registration between MAP and UNMAP
//	Pin, Ledger   the record of a pin outside the Go heap, and who keeps it
//	reach         how this process gets at device memory: device nodes, its own
//	              memory, or host staging (package staging); decided once
//	gate          the count of I/O inside a registration; closed, it refuses more
//	request       one transfer as the caller wrote it; op: the same, resolved
//	batch         requests of one call, sync (run) or async (submit … wait)
//	ticket        a batch's place in the order, taken when its call begins
//	handle        the number that stands for an async batch
//	resolve       request to op: device address to host address
//
// # Lifetimes
//
// Registration: reserved (its range is taken, nothing maps it yet) → live →
// draining (gate closed, the last deregmem or close waits for the I/O inside)
// → gone. A failed UNMAP leads back to live; a failed munmap to stuck, where
// the range stays taken and only munmap is tried again. A registration cannot
// go while its gate is held, and a gate is held from the moment a request is
// resolved until its I/O is done: for an async batch until the engine calls
// Done, whoever waits for the batch and whenever.
//
// Device: closed → opening → open → closing → closed. The last close first
// waits for the regmem and deregmem calls inside, then drains and removes each
// registration, then closes the node.
//
// Batch: take from the pool → Begin (ticket) → resolve (gates) → Run, or
// Submit and later Wait → gates left → results → back to the pool. Whatever
// happens on the way, a panic included, the ticket is retired, the gates are
// left and the memory returns, by deferred calls.
//
// Requests are read once, before Run or Submit; after that only Result is
// written, once each: at the end of Run; at submit (those that cannot be
// resolved) and at wait (the others) of an async batch.
//
// # Locks
//
// No lock is held during I/O, during a wait, or across a system call; waiting
// for a state (device.changed) lets its lock go, waiting for a gate is done
// without one.
//
//	device.mu            state, ranges and registrations' states of one device; never two devices' at once
//	└── (gates: atomic, entered and closed under it)
//	(Library.reached: atomic, changed once; staging.Device: no locks)
//	Library.engMu        the engine is made under it; leaf for core
//	slab.mu, pinLedger.mu    leaves
//
// The pools of the data path (batches, op arrays, registrations) have no lock.
// The engine takes its own locks, never one of these: Done, which it calls
// with the queue held up, only leaves gates and reports failures.
//
// # Memory
//
// The product runs with the collector off. In steady state nothing is
// allocated: entries of slabs are used again, op arrays and Pins lie in mapped
// memory, and errors are shared values.
package core
