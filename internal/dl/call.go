package dl

/*
#include <stdint.h>

// One trampoline for each C signature. The letters name the parameters: I int,
// U unsigned, P any pointer. All vendors answer with an int, 0 for success,
// but for the functions that explain an error. f is never 0.
static int phx_call(uintptr_t f) { return ((int (*)(void))f)(); }
static int phx_call_u(uintptr_t f, unsigned a) { return ((int (*)(unsigned))f)(a); }
static int phx_call_p(uintptr_t f, void *a) { return ((int (*)(void *))f)(a); }
static int phx_call_pi(uintptr_t f, void *a, int b) { return ((int (*)(void *, int))f)(a, b); }
static int phx_call_ip(uintptr_t f, int a, void *b) { return ((int (*)(int, void *))f)(a, b); }
static int phx_call_up(uintptr_t f, unsigned a, void *b) { return ((int (*)(unsigned, void *))f)(a, b); }
static int phx_call_pii(uintptr_t f, void *a, int b, int c) { return ((int (*)(void *, int, int))f)(a, b, c); }
static int phx_call_ppu(uintptr_t f, void *a, void *b, unsigned c) { return ((int (*)(void *, void *, unsigned))f)(a, b, c); }
static int phx_call_iip(uintptr_t f, int a, int b, void *c) { return ((int (*)(int, int, void *))f)(a, b, c); }
static const char *phx_text_i(uintptr_t f, int a) { return ((const char *(*)(int))f)(a); }
static const char *phx_text_ip(uintptr_t f, int a) {
	const char *text = 0;
	return ((int (*)(int, const char **))f)(a, &text) ? 0 : text;
}
*/
import "C"

import "unsafe"

// The Call methods run the function on the calling thread and return its int.
// Pointers are borrowed until the function returns; it must not keep them.

// Call is int f(void).
func (f Func) Call() int32 { return int32(C.phx_call(C.uintptr_t(f))) }

// CallU is int f(unsigned).
func (f Func) CallU(a uint32) int32 { return int32(C.phx_call_u(C.uintptr_t(f), C.uint(a))) }

// CallP is int f(T *).
func (f Func) CallP(a unsafe.Pointer) int32 { return int32(C.phx_call_p(C.uintptr_t(f), a)) }

// CallPI is int f(T *, int).
func (f Func) CallPI(a unsafe.Pointer, b int32) int32 {
	return int32(C.phx_call_pi(C.uintptr_t(f), a, C.int(b)))
}

// CallIP is int f(int, T *).
func (f Func) CallIP(a int32, b unsafe.Pointer) int32 {
	return int32(C.phx_call_ip(C.uintptr_t(f), C.int(a), b))
}

// CallUP is int f(unsigned, T *).
func (f Func) CallUP(a uint32, b unsafe.Pointer) int32 {
	return int32(C.phx_call_up(C.uintptr_t(f), C.uint(a), b))
}

// CallPII is int f(T *, int, int).
func (f Func) CallPII(a unsafe.Pointer, b, c int32) int32 {
	return int32(C.phx_call_pii(C.uintptr_t(f), a, C.int(b), C.int(c)))
}

// CallPPU is int f(T *, T *, unsigned).
func (f Func) CallPPU(a, b unsafe.Pointer, c uint32) int32 {
	return int32(C.phx_call_ppu(C.uintptr_t(f), a, b, C.uint(c)))
}

// CallIIP is int f(int, int, T *).
func (f Func) CallIIP(a, b int32, c unsafe.Pointer) int32 {
	return int32(C.phx_call_iip(C.uintptr_t(f), C.int(a), C.int(b), c))
}

// TextI is const char *f(int), a static text; "" for NULL.
func (f Func) TextI(a int32) string {
	return C.GoString(C.phx_text_i(C.uintptr_t(f), C.int(a)))
}

// TextIP is int f(int, const char **), which stores a static text; "" if it
// fails or stores NULL.
func (f Func) TextIP(a int32) string {
	return C.GoString(C.phx_text_ip(C.uintptr_t(f), C.int(a)))
}
