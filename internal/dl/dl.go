package dl

/*
#cgo LDFLAGS: -ldl
#cgo CFLAGS: -D_GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "loaded.h"

// why receives the loader's explanation, cut to n bytes and terminated.
static void phx_dl_explain(char *why, size_t n) {
	const char *text = dlerror();
	snprintf(why, n, "%s", text ? text : "the loader gives no reason");
}

static void *phx_dl_open(const char *name, int only_loaded, char *why, size_t n) {
	if (only_loaded && !strchr(name, '/') && phx_loaded(name) == PHX_LOADED_NO) {
		snprintf(why, n, "%s: not in this process", name);
		return NULL;
	}
	void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL | (only_loaded ? RTLD_NOLOAD : 0));
	if (!lib)
		phx_dl_explain(why, n);
	return lib;
}

static uintptr_t phx_dl_symbol(void *lib, const char *name, char *why, size_t n) {
	void *address = dlsym(lib, name);
	if (!address)
		phx_dl_explain(why, n);
	return (uintptr_t)address;
}

static int phx_dl_close(void *lib, char *why, size_t n) {
	int failed = dlclose(lib);
	if (failed)
		phx_dl_explain(why, n);
	return failed;
}
*/
import "C"

import (
	"fmt"
	"strings"
	"syscall"
	"unsafe"
)

// whyLen bounds the loader's explanation, in bytes.
const whyLen = 512

// Library is one loaded shared object.
type Library struct {
	handle unsafe.Pointer // dlopen's; nil after Close
	name   string         // set by Open, then read-only
}

// Func is the address of a C function in a Library. Its Call methods are named
// for the C signature they assume; nothing checks that it is the right one.
type Func uintptr

// Open loads the first of names that can be loaded, each a path or a name for
// the loader's search. Symbols are bound at once and stay private to it.
// MissingLibraryError: none could be loaded; it says why for each.
func Open(names ...string) (*Library, error) { return open(names, 0) }

// OpenLoaded is Open for a library that is in the process already: it loads
// nothing and runs nothing.
func OpenLoaded(names ...string) (*Library, error) { return open(names, 1) }

func open(names []string, onlyLoaded C.int) (*Library, error) {
	missing := &MissingLibraryError{Names: names, OnlyLoaded: onlyLoaded != 0}
	why := (*C.char)(C.malloc(whyLen))
	defer C.free(unsafe.Pointer(why))
	for _, name := range names {
		if name == "" || strings.IndexByte(name, 0) >= 0 {
			// dlopen would take the first for the program itself.
			missing.Reasons = append(missing.Reasons, fmt.Sprintf("%q is no library name", name))
			continue
		}
		text := C.CString(name)
		handle := C.phx_dl_open(text, onlyLoaded, why, whyLen)
		C.free(unsafe.Pointer(text))
		if handle != nil {
			return &Library{handle: handle, name: name}, nil
		}
		missing.Reasons = append(missing.Reasons, C.GoString(why))
	}
	return nil, missing
}

// Name is the name under which the library was found.
func (l *Library) Name() string { return l.name }

// Symbol looks a function up. MissingSymbolError: the library has none of that
// name (nor have the libraries it depends on).
func (l *Library) Symbol(name string) (Func, error) {
	why := (*C.char)(C.malloc(whyLen))
	defer C.free(unsafe.Pointer(why))
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	address := C.phx_dl_symbol(l.handle, text, why, whyLen)
	if address == 0 {
		return 0, &MissingSymbolError{Library: l.name, Symbol: name, Reason: C.GoString(why)}
	}
	return Func(address), nil
}

// Sym asks Bind for one function.
type Sym struct {
	Name     string
	Into     *Func // filled in by Bind
	Optional bool  // a library without it is fine: *Into becomes 0
}

// Bind looks up a table of functions and stops at the first one missing that
// is not optional.
func (l *Library) Bind(table ...Sym) error {
	for _, sym := range table {
		f, err := l.Symbol(sym.Name)
		if err != nil && !sym.Optional {
			return err
		}
		*sym.Into = f
	}
	return nil
}

// Close gives the reference back; the object is unloaded with its last one.
// EINVAL: the loader refused, or the library was closed before.
func (l *Library) Close() error {
	handle := l.handle
	if handle == nil {
		return fmt.Errorf("close %s twice: %w", l.name, syscall.EINVAL)
	}
	l.handle = nil
	why := (*C.char)(C.malloc(whyLen))
	defer C.free(unsafe.Pointer(why))
	if C.phx_dl_close(handle, why, whyLen) != 0 {
		return fmt.Errorf("close %s: %w (%s)", l.name, syscall.EINVAL, C.GoString(why))
	}
	return nil
}
