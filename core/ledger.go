package core

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pinLedger is the Ledger of a library without C around it. Its Pins lie in
// mapped memory, as those of the product do.
type pinLedger struct {
	mu     sync.Mutex // free holds every Pin of chunks that is not taken
	free   []*Pin
	chunks []unsafe.Pointer
}

const (
	ledgerChunk   = 64 << 10 // bytes
	pinsPerLedger = ledgerChunk / int(unsafe.Sizeof(Pin{}))
)

// Take returns a zeroed Pin, nil when memory is out.
func (g *pinLedger) Take() *Pin {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.free) == 0 {
		mem := mapMemory(ledgerChunk)
		if mem == nil {
			return nil
		}
		g.chunks = append(g.chunks, mem)
		pins := unsafe.Slice((*Pin)(mem), pinsPerLedger)
		for i := range pins {
			g.free = append(g.free, &pins[len(pins)-1-i])
		}
	}
	p := g.free[len(g.free)-1]
	g.free = g.free[:len(g.free)-1]
	return p
}

// Give takes a Pin back.
func (g *pinLedger) Give(p *Pin) {
	*p = Pin{}
	g.mu.Lock()
	g.free = append(g.free, p)
	g.mu.Unlock()
}

// Pinned does nothing: there is no exit handler.
func (g *pinLedger) Pinned() {}

// Opened does nothing: there is no fork handler.
func (g *pinLedger) Opened(int, int) {}

// unmapAll returns the memory; no Pin is taken.
func (g *pinLedger) unmapAll() {
	for _, mem := range g.chunks {
		unmapMemory(mem, ledgerChunk)
	}
	g.free, g.chunks = nil, nil
}

// mapMemory returns n bytes of zeroed memory outside the Go heap, nil when
// memory is out: the Go heap would abort the process.
func mapMemory(n uintptr) unsafe.Pointer {
	mem, err := unix.MmapPtr(-1, 0, nil, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil
	}
	return mem
}

// unmapMemory returns what mapMemory gave. It can only fail for want of
// kernel memory; then the address space stays ours, which harms nobody.
func unmapMemory(mem unsafe.Pointer, n uintptr) { _ = unix.MunmapPtr(mem, n) }
