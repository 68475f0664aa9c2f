// Package uring is the kernel's io_uring interface (linux/io_uring.h), as far
// as positioned reads and writes need it. It knows nothing of phoenix.
//
// A Ring has one owner thread at a time. The owner queues requests, enters
// the kernel to submit them and to wait, and takes the completions:
//
//	Queue, Queue, ... → Enter → Next, Next, ... → Enter → ...
//
// Three counters that the kernel and the owner share tell where a request is,
// and a Ring keeps no books beside them: Pending requests are queued but the
// kernel has not seen them, InFlight ones it has taken and not reported. Each
// request gives exactly one completion, and no more than Entries are ever
// pending or in flight together, so the completion queue cannot overflow.
//
// Memory named by a request that is in flight belongs to the kernel. Close is
// no barrier against that: the owner must see InFlight 0 first.
//
// Every system call goes through a Kernel; tests put another one there
// (package uringtest). After Open nothing allocates.
//
// Errors of Open wrap a syscall.Errno. ENOSYS and EPERM: io_uring is not to be
// had here (an old kernel; seccomp, a sysctl). ENOMEM, EMFILE, ENFILE: not now.
package uring
