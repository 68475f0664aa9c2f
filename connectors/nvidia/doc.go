// Package nvidia is the connector for CUDA devices. It reaches the driver
// through libcuda.so.1, which is opened when a device is first looked for.
//
// Numbering. FindDevice takes the ordinal as this process counts its devices,
// that is after CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, asks the driver
// for its PCI address, and looks for the phxfs device with that address in
// sysfs. A MIG instance has the address of the GPU it is part of.
//
// Without CUDA. Where libcuda is missing, too old, or does not start (in a forked
// child, above all), NVML lists the GPUs and package ordinals reads the variables
// that CUDA would have read. cuInit's "no device" is an answer, and stands.
//
// cuInit. CUDA does not survive fork once initialised: in a child whose parent
// called cuInit, every call answers 3 (not initialized). So cuInit is called
// by FindDevice only, never at load, and it is called each time: it is cheap
// once it has succeeded, and a failure is not remembered.
//
// Liveness. Identity asks for the buffer id of each 2 MiB of the range
// (pieces.h). An id is unique in the process: memory that was freed has none,
// and a new allocation at the same address has another. The question goes only
// to a libcuda that is in the process already, needs no current context and may
// come from any thread. identity.c answers it without Go, for the exit handler.
// Seen on an H200 with driver 580 (testdata/memory.c asks): plain, managed,
// stream-ordered and mapped memory (cuMemMap) all have an id and lose it when
// freed or unmapped; mapped memory has one id for each cuMemMap, a new one each
// time, so the id of an address says nothing of the neighbouring mapping. No
// mapping is smaller than 2 MiB or begins elsewhere than at a multiple of it. A
// libcuda that is loaded but not initialised refuses. A question takes 70 ns,
// 130 ns where it goes to another chunk each time.
//
// Staging. OpenStream retains the primary context of the device and makes it
// current on the calling thread, which is one of ours; Close undoes both. A
// copy to or from an address that has no memory any more is refused (1), which
// is EFAULT; whatever else goes wrong with a copy is EIO.
//
// Threads. All methods may be called from any thread; no lock is held across
// a call into the driver.
package nvidia
