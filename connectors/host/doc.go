// Package host is the connector for ordinary memory of the process. It needs
// no device, no driver and no kernel module: all eight devices exist, and the
// target of a registration is the address itself. Programs written for device
// memory run on it unchanged, at the speed of plain file I/O.
//
// A registration is checked when it is made, against /proc/self/maps, and not
// again: memory that the caller unmaps later makes I/O on it fail with the
// kernel's EFAULT. A file mapping beyond the end of its file passes the check
// and fails the same way.
//
// The connector has no state, so any thread may use it, and a forked child
// as well.
package host
