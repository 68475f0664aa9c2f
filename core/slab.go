package core

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// slab is a table of T that only grows. Entries never move and are never given
// back to the runtime, so a stale index is harmless and the steady state
// allocates nothing. Chunk k holds slabFirst<<k entries.
//
// take and give are lock-free: threads that come from C are bound to their OS
// thread, and parking one on a mutex costs more than the whole call.
type slab[T any] struct {
	init   func(index uint32, v *T) // called once for each entry, before its first use; set before the first take, then read-only
	chunks [slabChunks]atomic.Pointer[[]slabEntry[T]]
	free   stack

	mu    sync.Mutex // held while growing; chunks[:grown] are published
	grown int
}

const (
	slabFirst  = 64
	slabChunks = 20
	slabLimit  = slabFirst * (1<<slabChunks - 1) // entries, fewer than 2^26
)

type slabEntry[T any] struct {
	next atomic.Uint32 // index+1 of the entry below on a stack; 0: none
	v    T
}

// stack is a list of entries of one slab: the head's index+1 in the low half,
// in the high half a count of changes, so that a head that was taken and put
// back meanwhile is not mistaken for an untouched one.
type stack struct{ head atomic.Uint64 }

const stackChange = 1 << 32

// place finds the chunk and the position in it of an index.
func place(index uint32) (chunk int, at uint32) {
	j := index/slabFirst + 1
	chunk = bits.Len32(j) - 1
	return chunk, index - slabFirst*(1<<chunk-1)
}

func (s *slab[T]) entry(index uint32) *slabEntry[T] {
	chunk, at := place(index)
	return &(*s.chunks[chunk].Load())[at]
}

// at is the entry of an index that take has returned at some time.
func (s *slab[T]) at(index uint32) *T { return &s.entry(index).v }

// find is at for an index of any origin; nil where there is no entry.
func (s *slab[T]) find(index uint32) *T {
	if index >= slabLimit {
		return nil
	}
	chunk, at := place(index)
	entries := s.chunks[chunk].Load()
	if entries == nil {
		return nil
	}
	return &(*entries)[at].v
}

// pop takes the top entry of a stack; nil: it is empty.
func (s *slab[T]) pop(st *stack) *T {
	for {
		head := st.head.Load()
		if uint32(head) == 0 {
			return nil
		}
		e := s.entry(uint32(head) - 1)
		if st.head.CompareAndSwap(head, (head&^(stackChange-1)+stackChange)|uint64(e.next.Load())) {
			return &e.v
		}
	}
}

// push puts an entry that is on no stack on top of one.
func (s *slab[T]) push(st *stack, index uint32) {
	s.pushChain(st, index, s.entry(index))
}

// pushChain pushes a chain of entries that starts at index and ends at last.
func (s *slab[T]) pushChain(st *stack, index uint32, last *slabEntry[T]) {
	for {
		head := st.head.Load()
		last.next.Store(uint32(head))
		if st.head.CompareAndSwap(head, (head&^(stackChange-1)+stackChange)|uint64(index+1)) {
			return
		}
	}
}

// take returns an entry that is the caller's until give; nil: the table is
// full. The entry is as its last owner left it.
func (s *slab[T]) take() *T {
	for {
		if v := s.pop(&s.free); v != nil {
			return v
		}
		if !s.grow() {
			return nil
		}
	}
}

func (s *slab[T]) give(index uint32) { s.push(&s.free, index) }

// grow adds a chunk unless another thread just did.
func (s *slab[T]) grow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if uint32(s.free.head.Load()) != 0 {
		return true
	}
	if s.grown == slabChunks {
		return false
	}
	first := uint32(slabFirst * (1<<s.grown - 1))
	entries := make([]slabEntry[T], slabFirst<<s.grown)
	for i := range entries {
		if s.init != nil {
			s.init(first+uint32(i), &entries[i].v)
		}
		if i > 0 {
			entries[i-1].next.Store(first + uint32(i) + 1)
		}
	}
	s.chunks[s.grown].Store(&entries)
	s.grown++
	s.pushChain(&s.free, first, &entries[len(entries)-1])
	return true
}

// each calls f with every entry there is. Nobody else may use the slab.
func (s *slab[T]) each(f func(*T)) {
	for k := range s.grown {
		entries := *s.chunks[k].Load()
		for i := range entries {
			f(&entries[i].v)
		}
	}
}
