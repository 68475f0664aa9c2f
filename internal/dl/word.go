package dl

/*
#include <stdint.h>

// W is a word: an opaque handle, a device address, a size; it is passed in the
// register that a pointer of that place would be in. None of these functions
// keeps a pointer to Go's memory.
static int phx_call_i(uintptr_t f, int a) { return ((int (*)(int))f)(a); }
static int phx_call_pu(uintptr_t f, void *a, unsigned b) { return ((int (*)(void *, unsigned))f)(a, b); }
static int phx_call_piw(uintptr_t f, void *a, int b, uintptr_t c) { return ((int (*)(void *, int, uintptr_t))f)(a, b, c); }
static int phx_call_pwu(uintptr_t f, void *a, uintptr_t b, unsigned c) { return ((int (*)(void *, uintptr_t, unsigned))f)(a, b, c); }
static int phx_call_w(uintptr_t f, uintptr_t a) { return ((int (*)(uintptr_t))f)(a); }
static int phx_call_ww(uintptr_t f, uintptr_t a, uintptr_t b) { return ((int (*)(uintptr_t, uintptr_t))f)(a, b); }
static int phx_call_wp(uintptr_t f, uintptr_t a, void *b) { return ((int (*)(uintptr_t, void *))f)(a, b); }
static int phx_call_wpp(uintptr_t f, uintptr_t a, void *b, void *c) { return ((int (*)(uintptr_t, void *, void *))f)(a, b, c); }
static int phx_call_wpu(uintptr_t f, uintptr_t a, void *b, unsigned c) { return ((int (*)(uintptr_t, void *, unsigned))f)(a, b, c); }
static int phx_call_wup(uintptr_t f, uintptr_t a, unsigned b, void *c) { return ((int (*)(uintptr_t, unsigned, void *))f)(a, b, c); }
static int phx_call_wwww(uintptr_t f, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d) {
	return ((int (*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t))f)(a, b, c, d);
}
static int phx_call_wwwiw(uintptr_t f, uintptr_t a, uintptr_t b, uintptr_t c, int d, uintptr_t e) {
	return ((int (*)(uintptr_t, uintptr_t, uintptr_t, int, uintptr_t))f)(a, b, c, d, e);
}
*/
import "C"

import "unsafe"

// CallI is int f(int).
func (f Func) CallI(a int32) int32 { return int32(C.phx_call_i(C.uintptr_t(f), C.int(a))) }

// CallPU is int f(T *, unsigned).
func (f Func) CallPU(a unsafe.Pointer, b uint32) int32 {
	return int32(C.phx_call_pu(C.uintptr_t(f), a, C.uint(b)))
}

// CallPIW is int f(T *, int, word).
func (f Func) CallPIW(a unsafe.Pointer, b int32, c uintptr) int32 {
	return int32(C.phx_call_piw(C.uintptr_t(f), a, C.int(b), C.uintptr_t(c)))
}

// CallPWU is int f(T *, word, unsigned).
func (f Func) CallPWU(a unsafe.Pointer, b uintptr, c uint32) int32 {
	return int32(C.phx_call_pwu(C.uintptr_t(f), a, C.uintptr_t(b), C.uint(c)))
}

// CallW is int f(word).
func (f Func) CallW(a uintptr) int32 { return int32(C.phx_call_w(C.uintptr_t(f), C.uintptr_t(a))) }

// CallWW is int f(word, word).
func (f Func) CallWW(a, b uintptr) int32 {
	return int32(C.phx_call_ww(C.uintptr_t(f), C.uintptr_t(a), C.uintptr_t(b)))
}

// CallWP is int f(word, T *).
func (f Func) CallWP(a uintptr, b unsafe.Pointer) int32 {
	return int32(C.phx_call_wp(C.uintptr_t(f), C.uintptr_t(a), b))
}

// CallWPP is int f(word, T *, T *).
func (f Func) CallWPP(a uintptr, b, c unsafe.Pointer) int32 {
	return int32(C.phx_call_wpp(C.uintptr_t(f), C.uintptr_t(a), b, c))
}

// CallWPU is int f(word, T *, unsigned).
func (f Func) CallWPU(a uintptr, b unsafe.Pointer, c uint32) int32 {
	return int32(C.phx_call_wpu(C.uintptr_t(f), C.uintptr_t(a), b, C.uint(c)))
}

// CallWUP is int f(word, unsigned, T *).
func (f Func) CallWUP(a uintptr, b uint32, c unsafe.Pointer) int32 {
	return int32(C.phx_call_wup(C.uintptr_t(f), C.uintptr_t(a), C.uint(b), c))
}

// CallWWWW is int f(word, word, word, word).
func (f Func) CallWWWW(a, b, c, d uintptr) int32 {
	return int32(C.phx_call_wwww(C.uintptr_t(f), C.uintptr_t(a), C.uintptr_t(b), C.uintptr_t(c), C.uintptr_t(d)))
}

// CallWWWIW is int f(word, word, word, int, word).
func (f Func) CallWWWIW(a, b, c uintptr, d int32, e uintptr) int32 {
	return int32(C.phx_call_wwwiw(C.uintptr_t(f), C.uintptr_t(a), C.uintptr_t(b), C.uintptr_t(c), C.int(d), C.uintptr_t(e)))
}
