// Package dl reaches vendor libraries through dlopen, so that the library
// neither links them nor fails to load where they are missing.
//
//	lib, err := dl.Open("libcuda.so.1")
//	err = lib.Bind(dl.Sym{Name: "cuInit", Into: &initFn}, ...)
//	if code := initFn.CallU(0); code != 0 {
//		err = lib.Failed("cuInit", code, "")
//	}
//
// Three things can go wrong and each has an error type and a message of its
// own: MissingLibraryError, MissingSymbolError and CallError. All of them mean
// "not on this machine" to a caller that looks for a device, so each unwraps
// to ENODEV.
//
// Lifetime. A Library holds one reference to the loaded object, given back by
// Close. Close belongs to failed attempts that have called nothing in it yet:
// drivers start threads and register handlers, and do not survive being
// unloaded. A Func is valid while its Library is open.
//
// Threads. Everything may be called from any thread at any time; dlopen runs
// the constructors of what it loads, so no caller may hold a lock meanwhile.
// The C side keeps dlerror's text, which belongs to a thread, together with
// the call it explains. errno of the calling thread is left changed, as by any
// C call; the C border restores it (docs/abi.md §2).
package dl
