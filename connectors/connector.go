package connectors

// DevAddr is an address in device memory as the application passes it. It is
// an integer on purpose: the garbage collector must not see it as a pointer.
type DevAddr uintptr

// Connector is what the library knows of one vendor. Every method may be
// called from any thread. Errors carry a syscall.Errno.
type Connector interface {
	// Name is the value of PHXFS_VENDOR that selects it, in capitals.
	Name() string

	// PageSize is the alignment in bytes that registrations of this vendor's
	// memory need; phxfs_get_page_size returns it. A power of two.
	PageSize() uint64

	// FindDevice maps the vendor's ordinal, as this process numbers its
	// devices, to the index of the phxfs device, 0..7.
	// EINVAL: negative ordinal. ENODEV: no such device, no vendor library,
	// or no phxfs device for it.
	FindDevice(ordinal int) (int, error)
}

// Embedded is the capability of a connector whose "device memory" is ordinary
// memory of this process: it has all eight devices and needs no device node.
type Embedded interface {
	// CheckRange answers nil if [addr, addr+lenBytes) is mapped and writable
	// in this process, an error with EFAULT if it is not, and one with the
	// kernel's errno if that cannot be found out.
	CheckRange(addr DevAddr, lenBytes uint64) error
}

// Liveness is the capability to tell whether device memory that was pinned at
// registration is still the same, all of it (docs/abi.md, "Liveness rule").
type Liveness interface {
	// Identity returns an identity of the memory at [addr, addr+lenBytes),
	// which is another one as soon as any part was freed and allocated again.
	// The state says how far the answer can be trusted. lenBytes > 0, and the
	// sum does not overflow. Takes time in proportion to lenBytes: the vendor
	// is asked for each 2 MiB.
	Identity(addr DevAddr, lenBytes uint64) (id uint64, state LifeState)

	// IdentityFunc is the address of a C function
	//	int f(uint64_t addr, uint64_t len, uint64_t *id)
	// that gives the same answer (its result is a LifeState) without the Go
	// runtime: the exit handler needs it. 0 where there is none.
	IdentityFunc() uintptr
}

// LifeState is the outcome of a Liveness query. The values are shared with C.
type LifeState int32

const (
	LifeKnown   LifeState = 0 // the driver answered for the whole range: id is valid
	LifeGone    LifeState = 1 // the vendor library is in the process and refused: some of it was freed, or deinitialised
	LifeUnasked LifeState = 2 // no vendor library in the process (emulator, test rigs)
)

// Copier is the capability to copy between host memory and device memory of
// a device ordinal, in bytes; it returns when the copy is complete.
type Copier interface {
	CopyToDevice(ordinal int, dst DevAddr, src uintptr, lenBytes uint64) error
	CopyToHost(ordinal int, dst uintptr, src DevAddr, lenBytes uint64) error
}

// StreamFuncs is the capability to run a host function in stream order: fn is
// called once, on any thread, after all work queued earlier on stream.
type StreamFuncs interface {
	LaunchHostFunc(ordinal int, stream uintptr, fn func()) error
}
