// Package staging moves data between a device's memory and slots of host
// memory, for devices that no kernel module maps into the process
// (docs/abi.md, "Host staging"). The engine does the file side: it reads a
// file into a slot, or writes a slot to it, and leaves the copy to this
// package (engine.Stager, engine.Slot).
//
// # Words
//
//	slot   host memory for one piece of a transfer, engine.StageBytes and a page
//	lane   an OS thread of ours with a stream of the vendor's: it copies
//	job    what a slot asks of a lane: copy, get memory, give it back
//
// # Who does what
//
// Vendors' copies need a context that is current on the calling thread. Ours is
// current on the lanes' threads and on no other: never on a caller's, whose own
// context stays as it is. A thread that has filled a slot puts it into a lane's
// inbox, goes on with its next slot, and looks at the first one again when it
// has too many (engine.stageWindow). The lane begins the copies in the order of
// its inbox, asks for finished ones, and lets their owners go. While there is
// something to copy it does not sleep; with nothing left it looks on for some
// microseconds, on machines with enough cores, and then sleeps in futex(2).
//
// A job goes to the first lane that has none, so that a caller with one copy at
// a time keeps one lane warm and many copies use all of them.
//
// # Lifetimes
//
// Device: New makes nothing. The first copy starts a lane, and the lane makes
// the context and its stream; the first slot that is needed gets its memory
// from a lane, the next ones only when no slot is free: the memory is what the
// work in flight has needed at most, within the budget. Close, with nobody
// inside, gives memory, streams and threads back. A lane that cannot make its
// stream fails its jobs, and tries again at the next one.
//
// Slot: bare (no memory) → taken ⇄ free → bare again in Close. Between take and
// Release it is one thread's; between Start and the end of the copy it is the
// lane's. A slot that cannot get memory goes back to the bare ones, and its
// taker waits for one that has some, if there is any, else fails.
//
// # Lost memory
//
// A program may reset the device (cudaDeviceReset): memory, streams and events
// in its context go, the slots' memory too, and other memory may come to lie
// there. So where the vendor has identities of memory a slot is asked about
// before it is lent and before each copy; one that is gone is dropped, and the
// lanes make new streams. What was in flight meanwhile fails.
//
// # Locks
//
// None. Stacks of slots and inboxes of lanes are changed by compare-and-swap;
// who waits, for a slot or for a copy, sleeps on a word that is changed before
// the wake-up. A thread waits for a slot only if it holds none, so each slot
// that is waited for comes back.
package staging
