// Package pci knows PCI addresses and where sysfs lists the phxfs devices by
// them (docs/abi.md §5), below a root that is /sys unless a test says otherwise:
//
//	<root>/class/phxfs-generic/phxfs_devN/pci_bdf     "0000:65:00.0\n"
//	<root>/class/phxfs-generic/phxfs_devN/page_size   bytes; newer modules only
//
// Vendors write the same address in several ways (upper or lower case, a
// domain of none, four or eight digits), so addresses are compared as numbers,
// never as text.
//
// Nothing is cached: a module that is loaded later is found by the next call.
// The functions hold no state and may be called from any thread. Errors carry
// a syscall.Errno.
package pci
