package threeway

import "libphoenix/engine"

// memory draws the address of n bytes, and cuts n to what is there. Extents of
// one batch are disjoint. False: no memory is left.
func (d *drawer) memory(g, n int64, to *target) (engine.HostAddr, int64, bool) {
	switch pick := d.number(0, 31); {
	case pick == 31 && n > 0:
		return 0, min(n, 64<<10), true // where nothing may be mapped (vm.mmap_min_addr)
	case pick == 30 && n > 0:
		return ^engine.HostAddr(0) - 1<<30 - engine.HostAddr(d.number(0, 4096)), min(n, 64<<10), true // the kernel's
	case pick == 29 && !d.deep && !to.direct:
		d.deep = true
		at := d.a.abyss.to - d.number(0, cliffBytes-1)
		lengths := []int64{1 << 17, 8 << 20} // no slices: they might write behind the result
		if d.kind == engine.Read || to.state == nil {
			lengths = append(lengths, 8<<20+1, 1<<30, 1<<30+1, 1<<31-1, 1<<31, 1<<31+1, 3<<30, 1<<32, 6<<30)
		}
		if to.wide && d.kind == engine.Read {
			lengths = append(lengths, 1<<36, 1<<40)
		}
		return d.a.addr(at), of(d, lengths), true
	case pick >= 25 && d.cliffs < cliffs:
		i := d.cliffs
		d.cliffs++
		bad := d.a.bad[i]
		at := bad.from - d.number(-4096, 9000)&^int(g-1)
		if to.direct {
			at = max(at, bad.from)
		}
		return d.a.addr(at), min(n, int64(bad.to-at)), true
	case pick >= 18 && len(d.ops) > 0:
		if at := d.a.main.from + d.used; d.a.addr(at) == d.after() {
			return d.take(at, n)
		}
	}
	at := d.a.main.from + d.used + d.number(1, 200)
	align, skew := int(g), 0
	if d.number(0, 7) == 0 {
		skew = d.number(1, 4095)
	}
	return d.take((at+align-1)&^(align-1)+skew, n)
}

// after is the address that follows the last request's memory.
func (d *drawer) after() engine.HostAddr {
	last := &d.ops[len(d.ops)-1]
	return last.Addr + engine.HostAddr(last.Len)
}

// take gives out n bytes of main at at.
func (d *drawer) take(at int, n int64) (engine.HostAddr, int64, bool) {
	end := int64(at) + n
	if end > int64(d.a.main.to)-4096 {
		return 0, 0, false
	}
	d.used = int(end) - d.a.main.from
	return d.a.addr(at), n, true
}
