// Package ascend is the connector for Ascend NPUs. It reaches the CANN runtime
// through libascendcl.so and the management library libdcmi.so, which are
// opened when a device is first looked for.
//
// Numbering. FindDevice takes the ordinal as this process counts its devices,
// that is after ASCEND_RT_VISIBLE_DEVICES. The runtime turns it into the
// physical device, the management library into a card and a chip on it, whose
// PCI address it knows; the phxfs device with that address is looked for in
// sysfs. Where libdcmi can translate physical into logical numbers (inside
// containers they differ) it is asked to; else they are taken to be equal.
//
// aclInit. An application that calls aclInit after somebody else did is
// refused, so we call it only if the runtime will not count its devices
// without it, and take "initialised already" for success.
//
// Page size. As for AMD: what the kernel module announces, the largest if
// devices differ, else 4096 bytes. No public document names a larger unit for
// this vendor, and a kernel module that needs one refuses the registration.
//
// Liveness. CANN has no public identity of an allocation, so the connector
// lacks that capability: memory must be deregistered before it is freed.
//
// Staging. None: CANN can copy, but no public interface that we know of tells
// whether an address is memory of a device, and that must be checked.
//
// Not tried on hardware. Threads: all methods may be called from any thread;
// no lock is held across a call into a library.
package ascend
