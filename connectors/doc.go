// Package connectors says what the library needs to know of a vendor of
// device memory, and nothing more: which phxfs device belongs to the vendor's
// ordinal, how registrations must be aligned, and, where a vendor can, whether
// memory is still alive, how to copy it, and how to run a function in stream
// order. No connector does file I/O.
//
// Connector is what every vendor has; the other interfaces are capabilities,
// found by a type assertion.
//
// Each vendor is a folder below this one and a line in the table of
// connectors/registry. All are compiled in and none is linked: a vendor's
// libraries are reached through dlopen (internal/dl), when first needed, so
// the library loads on a machine that has none of them.
//
// Lifetimes. A Connector is made once and lives as long as the process. It
// starts no goroutine and holds nothing the process must give back; a vendor
// library whose initialisation was called stays loaded, because drivers do not
// survive being unloaded.
//
// Locks. Connectors hold none across a call into a driver. Vendor calls may
// take seconds (a driver's first initialisation); no caller may hold a lock of
// its own meanwhile.
//
// Failures are never remembered: a driver or a kernel module that is loaded
// later is found by the next call.
package connectors
