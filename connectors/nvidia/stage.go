package nvidia

import (
	"fmt"
	"syscall"
	"unsafe"

	"libphoenix/connectors"
	"libphoenix/connectors/copies"
	"libphoenix/internal/dl"
)

// Constants of cuda.h.
const (
	hostAllocPortable  = 1 // CU_MEMHOSTALLOC_PORTABLE
	eventDisableTiming = 2 // CU_EVENT_DISABLE_TIMING

	attributeMemoryType    = 2  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
	attributeDeviceOrdinal = 9  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
	attributeRangeStart    = 11 // CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
	attributeRangeSize     = 12 // CU_POINTER_ATTRIBUTE_RANGE_SIZE
	memoryTypeDevice       = 2  // CU_MEMORYTYPE_DEVICE
)

// copier is the functions of libcuda that staging calls, with their signatures
// as in cuda.h. All return a CUresult, an int.
type copier struct {
	*driver
	copies.Runtime
	retain     dl.Func // (CUcontext *, CUdevice)
	release    dl.Func // (CUdevice)
	setCurrent dl.Func // (CUcontext)
	toDevice   dl.Func // (CUdeviceptr, const void *, size_t, CUstream)
	toHost     dl.Func // (void *, CUdeviceptr, size_t, CUstream)
	attribute  dl.Func // (void *, int attribute, CUdeviceptr)
}

// copier is the driver with what staging needs, started. ENODEV as for
// FindDevice.
func (c *Connector) copier() (*copier, error) {
	d, err := c.driver()
	if err != nil {
		return nil, err
	}
	k, err := c.copies.Get(func() (*copier, error) {
		k := &copier{driver: d}
		k.Runtime = copies.Runtime{
			HostAlloc: copies.Call{Name: "cuMemHostAlloc"}, HostFree: copies.Call{Name: "cuMemFreeHost"}, HostFlags: hostAllocPortable,
			StreamCreate: copies.Call{Name: "cuStreamCreate"}, StreamDestroy: copies.Call{Name: "cuStreamDestroy_v2"},
			StreamSync:  copies.Call{Name: "cuStreamSynchronize"},
			EventCreate: copies.Call{Name: "cuEventCreate"}, EventDestroy: copies.Call{Name: "cuEventDestroy_v2"}, EventFlags: eventDisableTiming,
			EventRecord: copies.Call{Name: "cuEventRecord"}, EventQuery: copies.Call{Name: "cuEventQuery"},
			EventSync: copies.Call{Name: "cuEventSynchronize"}, Failed: d.failed,
		}
		if err := k.Bind(d.lib); err != nil {
			return nil, err
		}
		return k, d.lib.Bind(
			dl.Sym{Name: "cuDevicePrimaryCtxRetain", Into: &k.retain},
			dl.Sym{Name: "cuDevicePrimaryCtxRelease_v2", Into: &k.release},
			dl.Sym{Name: "cuCtxSetCurrent", Into: &k.setCurrent},
			dl.Sym{Name: "cuMemcpyHtoDAsync_v2", Into: &k.toDevice},
			dl.Sym{Name: "cuMemcpyDtoHAsync_v2", Into: &k.toHost},
			dl.Sym{Name: "cuPointerGetAttribute", Into: &k.attribute},
		)
	}, func(*copier) {}) // the library stays the driver's
	if err != nil {
		return nil, err
	}
	return k, k.start()
}

// StageDevice implements connectors.Stager.
func (c *Connector) StageDevice(ordinal int) error {
	k, err := c.copier()
	if err == nil {
		_, err = k.device(ordinal)
	}
	return c.bus.Of(ordinal, err)
}

// CheckMemory implements connectors.Stager. Neighbouring allocations (pieces
// mapped with cuMemMap, as PyTorch's expandable segments are) count together.
func (c *Connector) CheckMemory(ordinal int, addr connectors.DevAddr, lenBytes uint64) error {
	k, err := c.copier()
	if err != nil {
		return c.bus.Of(ordinal, err)
	}
	end := uint64(addr) + lenBytes
	for at := uint64(addr); at < end; {
		var kind uint32
		var device int32
		var start, size uint64
		for _, q := range []struct {
			into      unsafe.Pointer
			attribute int32
		}{
			{unsafe.Pointer(&kind), attributeMemoryType}, {unsafe.Pointer(&device), attributeDeviceOrdinal},
			{unsafe.Pointer(&start), attributeRangeStart}, {unsafe.Pointer(&size), attributeRangeSize},
		} {
			if code := k.attribute.CallPIW(q.into, q.attribute, uintptr(at)); code != 0 {
				return fmt.Errorf("no CUDA memory at %#x: %w (%v)", at, syscall.EFAULT, k.failed("cuPointerGetAttribute", code))
			}
		}
		if kind != memoryTypeDevice || device != int32(ordinal) {
			return fmt.Errorf("memory at %#x is of type %d of CUDA device %d, not device memory of %d: %w", at, kind, device, ordinal, syscall.EFAULT)
		}
		if start > at || size <= at-start {
			return fmt.Errorf("the driver says that %#x is in %d bytes at %#x: %w", at, size, start, syscall.EFAULT)
		}
		at = start + size
	}
	return nil
}

// context is the primary context of a device. It implements copies.Device.
type context struct {
	*copier
	device int32
}

// OpenStream implements connectors.Stager.
func (c *Connector) OpenStream(ordinal int) (connectors.Stream, error) {
	k, err := c.copier()
	if err != nil {
		return nil, c.bus.Of(ordinal, err)
	}
	device, err := k.device(ordinal)
	if err != nil {
		return nil, c.bus.Of(ordinal, err)
	}
	s, err := copies.Open(&k.Runtime, context{k, device})
	return s, c.bus.Of(ordinal, err)
}

// Enter implements copies.Device: it keeps the context alive.
func (x context) Enter() error {
	var handle uintptr
	if code := x.retain.CallPI(unsafe.Pointer(&handle), x.device); code != 0 {
		return x.Refused("cuDevicePrimaryCtxRetain", code)
	}
	if code := x.setCurrent.CallW(handle); code != 0 {
		_ = x.release.CallI(x.device) // of the reference just taken
		return x.Refused("cuCtxSetCurrent", code)
	}
	return nil
}

// Leave implements copies.Device.
func (x context) Leave() {
	_ = x.setCurrent.CallW(0)
	_ = x.release.CallI(x.device)
}

// Queue implements copies.Device.
func (x context) Queue(toDevice bool, dev, host, lenBytes, stream uintptr) error {
	if toDevice {
		return x.Broken("cuMemcpyHtoDAsync", x.toDevice.CallWWWW(dev, host, lenBytes, stream))
	}
	return x.Broken("cuMemcpyDtoHAsync", x.toHost.CallWWWW(host, dev, lenBytes, stream))
}
