package uring

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Options say what ring Open shall make.
type Options struct {
	Entries uint32 // most requests pending or in flight; rounded up to a power of two
	// Owned: only the thread that calls Open will ever use the ring, Close
	// included. It is then faster, and holds no fd where the kernel allows it.
	Owned bool
}

// ladder is the setup flags that a kernel may not know, newest first, so that
// what it does know survives.
var ladder = [...]uint32{SetupNoSQArray, SetupSingleIssuer, SetupCoopTaskrun, SetupSubmitAll}

// minEntries is where Open stops to ask for less.
const minEntries = 8

// Open makes a ring with k (nil: Linux). It asks for all that helps and goes
// without what the kernel refuses: flags after EINVAL, newest first; entries
// after ENOMEM (before 5.12 rings count against RLIMIT_MEMLOCK), by halves.
//
// No ring has DEFER_TASKRUN: its completions would come by Enter alone, and if
// a seccomp filter came to refuse that, nobody could tell when the kernel has
// done with the caller's memory.
func Open(k Kernel, o Options) (*Ring, error) {
	if k == nil {
		k = Linux{}
	}
	flags := uint32(SetupNoSQArray | SetupCoopTaskrun | SetupSubmitAll)
	if o.Owned {
		flags |= SetupSingleIssuer
	}
	entries := max(o.Entries, 1)
	for rung := 0; ; {
		p := &Params{Flags: flags}
		fd, errno := k.Setup(entries, p)
		switch {
		case errno == syscall.EINVAL && flags != 0:
			for ; flags&ladder[rung] == 0; rung++ {
			}
			flags &^= ladder[rung]
			continue
		case errno == syscall.ENOMEM && entries > minEntries:
			entries = max(entries/2, minEntries)
			continue
		case errno != 0:
			return nil, fmt.Errorf("io_uring_setup of %d entries, flags %#x: %w", entries, flags, errno)
		}
		r := &Ring{kernel: k, fd: fd, enterFD: fd, flags: flags}
		if errno := r.attach(p); errno != 0 {
			r.Close()
			if errno == syscall.ENOMEM && entries > minEntries {
				entries = max(entries/2, minEntries)
				continue
			}
			return nil, fmt.Errorf("map a ring of %d entries: %w", entries, errno)
		}
		if o.Owned {
			r.registerFD(p.Features)
		}
		return r, nil
	}
}

// registerFD makes the kernel remember the ring for this thread, which saves
// the fd look-up of each Enter, and the fd itself from 6.3 on. If it refuses,
// the ring goes by its fd.
func (r *Ring) registerFD(features uint32) {
	u := &RingUpdate{Offset: ^uint32(0), Data: uint64(r.fd)}
	if n, errno := r.kernel.Register(r.fd, RegisterRingFDs, unsafe.Pointer(u), 1); errno != 0 || n != 1 {
		return
	}
	r.registered, r.enterFD, r.enterFlags = true, int(u.Offset), EnterRegisteredRing
	if features&FeatRegRegRing != 0 {
		r.kernel.Close(r.fd)
		r.fd = none
	}
}

// Close ends the ring. Nothing may be in flight; pending requests are dropped.
func (r *Ring) Close() {
	if r.registered {
		u := &RingUpdate{Offset: uint32(r.enterFD)}
		fd, op := r.fd, uint32(UnregisterRingFDs)
		if fd == none {
			fd, op = r.enterFD, op|UseRegisteredRing
		}
		// A failure leaves the ring to the end of its thread.
		_, _ = r.kernel.Register(fd, op, unsafe.Pointer(u), 1)
	}
	for _, m := range r.maps {
		if m != nil {
			r.kernel.Unmap(m)
		}
	}
	if r.fd != none {
		r.kernel.Close(r.fd)
	}
	*r = Ring{fd: none}
}
