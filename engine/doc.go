// Package engine moves bytes between files and host memory, in batches. It
// knows fds, host addresses, queues and threads; it does not know devices,
// registrations or C.
//
// # Life of a batch
//
//	over --Begin--> queued ---------> started --Run--> over        Sync
//	over --Begin--> queued --Submit, I/O, Done--> done --Wait--> over  Async
//
// A Batch is its owner's while it is over. Begin takes its ticket; Run, Submit
// and Abandon end the owner's right to touch its fields; Run, Abandon and Wait
// give it back. Until then the engine reads Ops and writes their results, and
// no longer: when Run or Wait returns, no thread of the engine will touch the
// batch, its ops or the memory they name, and the batch may begin again at
// once. Nothing is allocated on the way.
//
// # Order
//
// Tickets form a fair lock: sync batches are its readers, async ones its
// writers (queue.go). While no async batch is around, a sync batch pays one
// atomic addition in Begin and one at the end. Begin of an async batch sets
// asyncAround; the count it finds is the sync batches before it, and all later
// tickets take the list. advanceLocked starts the head of the list: sync
// batches together, an async one alone, once it is submitted and the count is
// 0. A sync Begin that meets the bit has raised the count for a moment; when it
// takes that back to 0 it advances the queue itself, so no start is lost.
//
// # Claims
//
// A unit is an op, one 8 MiB slice of a bigger op, or a run of neighbours that
// are contiguous in file and memory and moved as one (merge.go). Participants claim
// runs of units from one atomic cursor (claim.go), as many as are worth about
// 200 µs by estimate, or less where the transport asks for less. A unit belongs
// to the participant that claimed it, which settles it exactly once. Slices
// meet in Op.Result, which starts at the full length and is lowered to each
// place at which a slice stopped: what remains is the contiguous prefix.
//
// # Participants: join, leave, recycle
//
// A batch is worked on by its owner (sync) and by helpers and threads in Wait
// or in Run before their turn (park.go, pool.go, helper.go). The rules that
// make it safe to reuse a batch at once:
//
//   - Whoever is not the owner joins under queue.mu, and only while the cursor
//     has not reached the end; it leaves, under queue.mu, after all that it
//     claimed is settled. Therefore: cursor at the end and nobody joined means
//     all units are settled, and nobody can come any more.
//   - For an async batch exactly one leaver finds that state; it completes the
//     batch: Done, then the slot (OnAsync), then state done, then the next
//     start, all but Done under one hold of queue.mu. Storing done, or started
//     for a sync batch, is the last touch of the batch by that thread.
//   - The owner of a sync batch finds that state itself in drain, or sleeps
//     until the leaver that finds it wakes it.
//   - A sleeping thread is let go by one atomic swap of its word. After that
//     the waker only passes the word's address to futex(2): a stale wake-up
//     may hit whoever sleeps there next, which looks at its word and sleeps on.
//
// Why no wake-up is lost: threads look for work and put themselves on an idle
// list under one hold of queue.mu, and work appears under queue.mu. So work
// either is seen before the thread sleeps, or finds it on the list. Whoever
// starts an async batch makes sure that one thread looks: itself, if it is
// about to look anyway, else one from the lists; if no helper sleeps, each of
// them looks before it does. A thread in Wait or Run may be that one, since
// what it waits for lies behind the batch it is woken for: it cannot go home
// without having looked while there is something to do. If it finds no free
// lane it hands the wake-up to a helper.
//
// # Threads
//
// Helpers start together at the first batch that needs one (any async batch;
// a sync batch of more than 60 µs, estimated or, where a lane does one transfer
// at a time, measured on its first) and end in Close. Each keeps its OS thread
// and sleeps in futex(2). Wake-ups spread as a tree: one or two by the thread
// that brings the work, two by each participant that joins. A transport
// (lane.go) gives every participant its own way to the kernel.
//
// A panic under a lane costs the claimed units that were not finished an -EIO,
// a panic in a callback costs the callback; Config.Notice is told; the thread
// and the batch go on.
//
// # io_uring
//
// NewUring has lanes with a ring each: those of helpers belong to one thread
// for ever, those of callers come from a pool and are lent for one batch. A
// lane keeps a window of transfers going (uringlane.go, uringfill.go,
// uringreap.go): what it claims it queues, one system call submits it and
// waits, a quarter of the window at a time while there is more to claim.
// Whatever could differ from pread is asked of the kernel or done by pread
// (uringfd.go, uringreap.go). A ring that fails is drained before anything
// returns, since closing it would not stop the kernel, and dropped
// (uringbreak.go); its thread goes on with plain system calls and tries again
// later. Choose takes this engine only if a ring could be made and read with.
//
// # Linux AIO
//
// The lanes of NewSync are plain system calls, but for batches whose first file
// is O_DIRECT: then a thread borrows one of a few AIO contexts (aiopool.go) and
// keeps many transfers going (aiolane.go). Denied once, AIO is used no more; in
// flight is waited for in any case (aiodrain.go).
//
// # Staging
//
// A batch with a Stager is done without lanes (stage.go, stagelane.go): each
// participant reads a unit into a slot of host memory, lets the Stager's threads
// copy it on, and reads the next one meanwhile, with up to four slots. A unit is
// settled when its copy is over, so results, order and drains are as ever. A
// thread waits for a slot only if it holds none.
//
// # Locks
//
// queue.mu is the only lock. It guards the list of tickets, the list of
// batches that want help, the idle lists and the slots; nothing under it
// blocks, and Config.OnAsync runs under it. Config.IO and Batch.Done run
// without it.
package engine
