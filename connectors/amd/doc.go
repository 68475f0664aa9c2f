// Package amd is the connector for HIP devices. It reaches the runtime through
// libamdhip64.so, which is opened when a device is first looked for.
//
// Numbering. FindDevice takes the ordinal as this process counts its devices,
// that is after HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES, asks the runtime
// for its PCI address, and looks for the phxfs device with that address in
// sysfs. hipInit is called each time: it is cheap once it has succeeded, and a
// failure is not remembered.
//
// Page size. Newer kernel modules announce one for each device; the connector
// takes the largest, so that memory aligned to it can be registered on every
// device. Older modules announce none: 4096 bytes. The answer is kept once a
// module has announced one, since callers align by it.
//
// Liveness. As for NVIDIA: HIP's buffer id of each 2 MiB of the range, asked only
// of a HIP runtime that is in the process already. That memory is not mapped in
// smaller pieces is an assumption (HIP may allow it). A runtime without
// hipPointerGetAttribute (before ROCm 5) cannot answer, which counts as gone.
//
// Staging. OpenStream makes the device current on the calling thread, which is
// one of ours. The runtime takes addresses that it does not know for memory of
// the host, so the memory is asked about before each copy: one that was freed
// is EFAULT. Not tried on hardware.
//
// Threads. All methods may be called from any thread; no lock is held across
// a call into the runtime.
package amd
