package core

import (
	"sync/atomic"
	"unsafe"

	"libphoenix/engine"
)

// Op arrays hold the ops of batches with more than smallOps requests. They lie
// outside the Go heap: a huge array is then refused with ENOMEM where the Go
// heap would abort the process. Those of a size class are kept for the next
// batch; larger ones go back to the kernel at once.

const (
	opBytes   = unsafe.Sizeof(engine.Op{})
	pageBytes = 4096

	smallestArray = 4 << 10 // bytes; each class is 4 times the one below
	largestArray  = 1 << 20 // bytes; of the largest class
	arrayClasses  = 5
	noClass       = arrayClasses // a size of its own
	keptBytes     = 16 << 20     // bytes, the most that stay unused in each class
)

// opArray is mapped memory for ops. It is an entry of opArrays.slab.
type opArray struct {
	index uint32         // set by the slab, then read-only
	class uint8          // owned by whoever took the entry, like the rest
	mem   unsafe.Pointer // nil: none
	bytes uintptr
}

func (a *opArray) ops(n int) []engine.Op {
	return unsafe.Slice((*engine.Op)(a.mem), n)
}

// opArrays is the pool. Entries of slab with memory are in use or on the stack
// of their class; those without are on the slab's own.
type opArrays struct {
	mapMem   func(n uintptr) unsafe.Pointer // nil: memory is out; set by setUp (tests put another there), then read-only
	unmapMem func(mem unsafe.Pointer, n uintptr)
	slab     slab[opArray]
	kept     [arrayClasses]struct {
		stack stack
		bytes atomic.Int64 // on the stack, or about to be
	}
}

func (p *opArrays) setUp() {
	p.mapMem, p.unmapMem = mapMemory, unmapMemory
	p.slab.init = func(i uint32, a *opArray) { a.index = i }
}

// sizeOf is the class and the size in bytes of an array for n ops.
func sizeOf(n int) (class uint8, bytes uintptr) {
	need := uintptr(n) * opBytes
	bytes = smallestArray
	for class = 0; class < arrayClasses; class++ {
		if need <= bytes {
			return class, bytes
		}
		bytes *= 4
	}
	return noClass, (need + pageBytes - 1) &^ (pageBytes - 1)
}

// take gives b room for n ops, with b.Ops empty; false: memory is out.
func (p *opArrays) take(b *batch, n int) bool {
	if n <= smallOps {
		b.Ops = b.small[:0]
		return true
	}
	class, bytes := sizeOf(n)
	var a *opArray
	if class != noClass {
		if a = p.slab.pop(&p.kept[class].stack); a != nil {
			p.kept[class].bytes.Add(-int64(bytes))
		}
	}
	if a == nil {
		if a = p.slab.take(); a == nil {
			return false
		}
		mem := p.mapMem(bytes)
		if mem == nil {
			p.slab.give(a.index)
			return false
		}
		a.class, a.mem, a.bytes = class, mem, bytes
	}
	b.array = a
	b.Ops = a.ops(n)[:0]
	return true
}

// give takes the room of b back. No thread looks at the ops any more.
func (p *opArrays) give(b *batch) {
	a := b.array
	b.Ops, b.array = nil, nil
	if a == nil {
		return
	}
	if a.class != noClass {
		kept := &p.kept[a.class]
		if kept.bytes.Add(int64(a.bytes)) <= keptBytes {
			p.slab.push(&kept.stack, a.index)
			return
		}
		kept.bytes.Add(-int64(a.bytes))
	}
	p.unmap(a)
}

func (p *opArrays) unmap(a *opArray) {
	p.unmapMem(a.mem, a.bytes)
	a.mem, a.bytes = nil, 0
	p.slab.give(a.index)
}

// unmapFree returns the memory of all arrays that are not in use.
func (p *opArrays) unmapFree() {
	for class := range p.kept {
		for a := p.slab.pop(&p.kept[class].stack); a != nil; a = p.slab.pop(&p.kept[class].stack) {
			p.kept[class].bytes.Add(-int64(a.bytes))
			p.unmap(a)
		}
	}
}
