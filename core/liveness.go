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

// alive says whether UNMAP is due: the answer at MAP and the answer now are
// the same, and neither is a refusal. No vendor library then and now (the
// emulator) counts as the same.
func (l *Library) alive(r *registration) bool {
	id, state := l.identity(r)
	switch {
	case state != r.pin.Life:
		return false
	case state == int32(connectors.LifeKnown):
		return id == r.pin.Identity
	default:
		return state == int32(connectors.LifeUnasked)
	}
}
