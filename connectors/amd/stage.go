package amd

import (
	"fmt"
	"syscall"
	"unsafe"

	"libphoenix/connectors"
	"libphoenix/connectors/copies"
	"libphoenix/internal/dl"
)

// Constants of hip_runtime_api.h.
const (
	hostToDevice = 1 // hipMemcpyHostToDevice
	deviceToHost = 2 // hipMemcpyDeviceToHost

	attributeMemoryType    = 2 // HIP_POINTER_ATTRIBUTE_MEMORY_TYPE
	attributeDeviceOrdinal = 9 // HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL
	// memoryTypeDevice is hipMemoryTypeDevice since ROCm 6. Before, it was 1,
	// which is host memory now: memory of an older runtime is refused.
	memoryTypeDevice = 2

	// pieceBytes is how far apart the addresses are that the runtime is asked
	// about (life/pieces.h).
	pieceBytes = 2 << 20
)

// copier is the functions of libamdhip64 that staging calls, with their
// signatures as in hip_runtime_api.h. All return a hipError_t, an int.
type copier struct {
	*runtime
	copies.Runtime
	setDevice   dl.Func // (int ordinal), of the calling thread
	memcpyAsync dl.Func // (void *to, const void *from, size_t, hipMemcpyKind, hipStream_t)
	attribute   dl.Func // (void *, int attribute, hipDeviceptr_t)
}

// copier is the runtime with what staging needs, started. ENODEV as for
// FindDevice.
func (c *Connector) copier() (*copier, error) {
	r, err := c.runtime()
	if err != nil {
		return nil, err
	}
	k, err := c.copies.Get(func() (*copier, error) {
		k := &copier{runtime: r}
		k.Runtime = copies.Runtime{
			HostAlloc: copies.Call{Name: "hipHostMalloc"}, HostFree: copies.Call{Name: "hipHostFree"},
			StreamCreate: copies.Call{Name: "hipStreamCreateWithFlags"}, StreamDestroy: copies.Call{Name: "hipStreamDestroy"},
			StreamSync:  copies.Call{Name: "hipStreamSynchronize"},
			EventCreate: copies.Call{Name: "hipEventCreateWithFlags"}, EventDestroy: copies.Call{Name: "hipEventDestroy"},
			EventRecord: copies.Call{Name: "hipEventRecord"}, EventQuery: copies.Call{Name: "hipEventQuery"},
			EventSync: copies.Call{Name: "hipEventSynchronize"}, Failed: r.failed,
		}
		if err := k.Bind(r.lib); err != nil {
			return nil, err
		}
		return k, r.lib.Bind(
			dl.Sym{Name: "hipSetDevice", Into: &k.setDevice},
			dl.Sym{Name: "hipMemcpyAsync", Into: &k.memcpyAsync},
			dl.Sym{Name: "hipPointerGetAttribute", Into: &k.attribute},
		)
	}, func(*copier) {}) // the library stays the runtime's
	if err != nil {
		return nil, err
	}
	return k, k.start()
}

// StageDevice implements connectors.Stager.
func (c *Connector) StageDevice(ordinal int) error {
	k, err := c.copier()
	if err == nil {
		err = k.device(ordinal)
	}
	return c.bus.Of(ordinal, err)
}

// CheckMemory implements connectors.Stager. It asks about the first byte, each
// multiple of 2 MiB and the last byte: a hole between that begins and ends in
// the same 2 MiB is not seen.
func (c *Connector) CheckMemory(ordinal int, addr connectors.DevAddr, lenBytes uint64) error {
	k, err := c.copier()
	if err != nil {
		return c.bus.Of(ordinal, err)
	}
	return k.check(ordinal, uintptr(addr), uintptr(lenBytes))
}

func (k *copier) check(ordinal int, addr, lenBytes uintptr) error {
	if lenBytes == 0 {
		return nil
	}
	last := addr + lenBytes - 1
	for at := addr; ; at = min(last, (at|(pieceBytes-1))+1) {
		var kind uint32
		var device int32
		for _, q := range []struct {
			into      unsafe.Pointer
			attribute int32
		}{{unsafe.Pointer(&kind), attributeMemoryType}, {unsafe.Pointer(&device), attributeDeviceOrdinal}} {
			if code := k.attribute.CallPIW(q.into, q.attribute, at); code != 0 {
				return fmt.Errorf("no HIP memory at %#x: %w (%v)", at, syscall.EFAULT, k.failed("hipPointerGetAttribute", code))
			}
		}
		if kind != memoryTypeDevice || int(device) != ordinal {
			return fmt.Errorf("memory at %#x is of type %d of HIP device %d, not device memory of %d: %w", at, kind, device, ordinal, syscall.EFAULT)
		}
		if at == last {
			return nil
		}
	}
}

// device is a HIP device. It implements copies.Device.
type device struct {
	*copier
	ordinal int
}

// OpenStream implements connectors.Stager.
func (c *Connector) OpenStream(ordinal int) (connectors.Stream, error) {
	k, err := c.copier()
	if err == nil {
		err = k.device(ordinal)
	}
	if err != nil {
		return nil, c.bus.Of(ordinal, err)
	}
	s, err := copies.Open(&k.Runtime, device{k, ordinal})
	return s, c.bus.Of(ordinal, err)
}

// Enter implements copies.Device. The device is the calling thread's alone, and
// that thread is ours: there is nothing to go back to.
func (d device) Enter() error {
	if code := d.setDevice.CallI(int32(d.ordinal)); code != 0 {
		return d.Refused("hipSetDevice", code)
	}
	return nil
}

// Leave implements copies.Device.
func (device) Leave() {}

// Queue implements copies.Device. The runtime takes an address that it does not
// know for one of the host, so it is asked first.
func (d device) Queue(toDevice bool, dev, host, lenBytes, stream uintptr) error {
	if err := d.check(d.ordinal, dev, lenBytes); err != nil {
		return err
	}
	if toDevice {
		return d.Broken("hipMemcpyAsync", d.memcpyAsync.CallWWWIW(dev, host, lenBytes, hostToDevice, stream))
	}
	return d.Broken("hipMemcpyAsync", d.memcpyAsync.CallWWWIW(host, dev, lenBytes, deviceToHost, stream))
}
