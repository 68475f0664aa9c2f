package dl

import "sync/atomic"

// Lazy is the bound functions T of a library that is opened when it is first
// needed, and never unloaded. A failure is not remembered.
type Lazy[T any] struct{ bound atomic.Pointer[T] }

// Get returns what the first open that succeeded has returned. Threads that
// race each open; all but one give what they have to drop, which must call
// nothing in the library but Close.
func (l *Lazy[T]) Get(open func() (*T, error), drop func(*T)) (*T, error) {
	if t := l.bound.Load(); t != nil {
		return t, nil
	}
	t, err := open()
	if err != nil {
		return nil, err
	}
	if !l.bound.CompareAndSwap(nil, t) {
		drop(t)
		return l.bound.Load(), nil
	}
	return t, nil
}

// Load is Open and Bind; what lacks a function is closed again. It calls none.
func Load(names []string, table ...Sym) (*Library, error) {
	lib, err := Open(names...)
	if err != nil {
		return nil, err
	}
	if err := lib.Bind(table...); err != nil {
		_ = lib.Close()
		return nil, err
	}
	return lib, nil
}
