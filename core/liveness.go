package core

import "libphoenix/connectors"

// The liveness rule (docs/abi.md §5): UNMAP of memory whose driver has already
// dropped the pin is a use-after-free in the kernel, a UNMAP left out leaks a
// pin. So UNMAP is done only if the memory, the whole range of it, is known to be
// what MAP pinned.

// identity is what the vendor says of the memory now. Without a way to ask it
// is as if no vendor library were there.
func (l *Library) identity(r *registration) (id uint64, state int32) {
	if l.life == nil || l.reach() != reachNode {
		return 0, int32(connectors.LifeUnasked)
	}
	id, life := l.life.Identity(r.addr, r.lenBytes)
	return id, int32(life)
}

// doubt is why UNMAP is left out, "": it is due, for the answer at MAP and the
// answer now are the same, and neither is a refusal. No vendor library then and
// now (the emulator) counts as the same. cabi/live.c says and does likewise at
// exit.
//
// A library that came after MAP is no help. What it says is of what lies there
// now; whether that is what was pinned, or memory it has never heard of is alive,
// nobody knows, and a pin too many does less harm than an UNMAP too many.
func (l *Library) doubt(r *registration) string {
	id, state := l.identity(r)
	then, now := connectors.LifeState(r.pin.Life), connectors.LifeState(state)
	switch {
	case then == connectors.LifeUnasked && now == then:
		return ""
	case then == connectors.LifeUnasked:
		return "the vendor's library came after regmem and cannot tell what was registered: UNMAP left out"
	case then == connectors.LifeGone:
		return "the vendor's library did not know the memory at regmem: UNMAP left out"
	case now == connectors.LifeUnasked:
		return "the vendor's library has left the process and cannot be asked for the memory: UNMAP left out"
	case now == connectors.LifeGone:
		return "device memory was freed before deregmem, or the vendor's library is shut down: UNMAP left out"
	case id != r.pin.Identity:
		return "device memory was freed before deregmem, and other memory lies there: UNMAP left out"
	}
	return ""
}
