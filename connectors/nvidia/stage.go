package nvidia

import (
	"fmt"
	"syscall"
	"unsafe"

	"libphoenix/connectors"
	"libphoenix/connectors/copies"
	"libphoenix/internal/dl"
)

// Results and constants of cuda.h.
const (
	invalidValue = 1   // CUDA_ERROR_INVALID_VALUE
	outOfMemory  = 2   // CUDA_ERROR_OUT_OF_MEMORY
	notReady     = 600 // CUDA_ERROR_NOT_READY

	hostAllocPortable  = 1 // CU_MEMHOSTALLOC_PORTABLE
	streamNonBlocking  = 1 // CU_STREAM_NON_BLOCKING
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
	retain, release, setCurrent             dl.Func
	hostAlloc, hostFree                     dl.Func
	streamCreate, streamDestroy, streamSync dl.Func
	toDevice, toHost                        dl.Func
	eventCreate, eventDestroy, eventRecord  dl.Func
	eventQuery, eventSync                   dl.Func
	attribute                               dl.Func
}

// copier is the driver with what staging needs, started. ENODEV as for
// FindDevice.
func (c *Connector) copier() (*copier, error) {
	k := c.copies.Load()
	if k == nil {
		d, err := c.driver()
		if err != nil {
			return nil, err
		}
		k = &copier{driver: d}
		err = d.lib.Bind(
			dl.Sym{Name: "cuDevicePrimaryCtxRetain", Into: &k.retain},
			dl.Sym{Name: "cuDevicePrimaryCtxRelease_v2", Into: &k.release},
			dl.Sym{Name: "cuCtxSetCurrent", Into: &k.setCurrent},
			dl.Sym{Name: "cuMemHostAlloc", Into: &k.hostAlloc},
			dl.Sym{Name: "cuMemFreeHost", Into: &k.hostFree},
			dl.Sym{Name: "cuStreamCreate", Into: &k.streamCreate},
			dl.Sym{Name: "cuStreamDestroy_v2", Into: &k.streamDestroy},
			dl.Sym{Name: "cuStreamSynchronize", Into: &k.streamSync},
			dl.Sym{Name: "cuMemcpyHtoDAsync_v2", Into: &k.toDevice},
			dl.Sym{Name: "cuMemcpyDtoHAsync_v2", Into: &k.toHost},
			dl.Sym{Name: "cuEventCreate", Into: &k.eventCreate},
			dl.Sym{Name: "cuEventDestroy_v2", Into: &k.eventDestroy},
			dl.Sym{Name: "cuEventRecord", Into: &k.eventRecord},
			dl.Sym{Name: "cuEventQuery", Into: &k.eventQuery},
			dl.Sym{Name: "cuEventSynchronize", Into: &k.eventSync},
			dl.Sym{Name: "cuPointerGetAttribute", Into: &k.attribute},
		)
		if err != nil {
			return nil, err
		}
		c.copies.CompareAndSwap(nil, k)
	}
	if code := k.init.CallU(0); code != 0 {
		return nil, k.failed("cuInit", code)
	}
	return k, nil
}

// device is the CUdevice of an ordinal.
func (k *copier) device(ordinal int) (int32, error) {
	var count, device int32
	if code := k.count.CallP(unsafe.Pointer(&count)); code != 0 {
		return 0, k.failed("cuDeviceGetCount", code)
	}
	if ordinal < 0 || ordinal >= int(count) {
		return 0, fmt.Errorf("the driver shows this process %d devices (CUDA_VISIBLE_DEVICES counts): %w", count, syscall.ENODEV)
	}
	if code := k.get.CallPI(unsafe.Pointer(&device), int32(ordinal)); code != 0 {
		return 0, k.failed("cuDeviceGet", code)
	}
	return device, nil
}

// StageDevice implements connectors.Stager.
func (c *Connector) StageDevice(ordinal int) error {
	k, err := c.copier()
	if err == nil {
		_, err = k.device(ordinal)
	}
	if err != nil {
		return fmt.Errorf("CUDA device %d: %w", ordinal, err)
	}
	return nil
}

// CheckMemory implements connectors.Stager. Neighbouring allocations (pieces
// mapped with cuMemMap, as PyTorch's expandable segments are) count together.
func (c *Connector) CheckMemory(ordinal int, addr connectors.DevAddr, lenBytes uint64) error {
	k, err := c.copier()
	if err != nil {
		return fmt.Errorf("CUDA device %d: %w", ordinal, err)
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

// stream is a CUDA stream in the primary context of a device, which is current
// on the thread that made it.
type stream struct {
	*copier
	device int32
	handle uintptr
	events [connectors.StreamDepth]uintptr
}

// OpenStream implements connectors.Stager.
func (c *Connector) OpenStream(ordinal int) (connectors.Stream, error) {
	k, err := c.copier()
	if err != nil {
		return nil, fmt.Errorf("CUDA device %d: %w", ordinal, err)
	}
	device, err := k.device(ordinal)
	if err != nil {
		return nil, fmt.Errorf("CUDA device %d: %w", ordinal, err)
	}
	s := &stream{copier: k, device: device}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("CUDA device %d: %w", ordinal, err)
	}
	return copies.New(s), nil
}

// open makes all or nothing.
func (s *stream) open() error {
	var context uintptr
	if code := s.retain.CallPI(unsafe.Pointer(&context), s.device); code != 0 {
		return s.refused("cuDevicePrimaryCtxRetain", code)
	}
	if code := s.setCurrent.CallW(context); code != 0 {
		_ = s.release.CallI(s.device) // of the reference just taken
		return s.refused("cuCtxSetCurrent", code)
	}
	var made uintptr // C stores into a variable of its own, not into s, which holds pointers
	if code := s.streamCreate.CallPU(unsafe.Pointer(&made), streamNonBlocking); code != 0 {
		s.Close()
		return s.refused("cuStreamCreate", code)
	}
	s.handle = made
	for i := range s.events {
		if code := s.eventCreate.CallPU(unsafe.Pointer(&made), eventDisableTiming); code != 0 {
			s.Close()
			return s.refused("cuEventCreate", code)
		}
		s.events[i] = made
	}
	return nil
}

// refused is why making something failed.
func (s *stream) refused(call string, code int32) error {
	if code == outOfMemory {
		return fmt.Errorf("%w (%v)", syscall.ENOMEM, s.failed(call, code))
	}
	return s.failed(call, code)
}

// broken is why a copy failed.
func (s *stream) broken(call string, code int32) error {
	if code == invalidValue { // not an address any more
		return fmt.Errorf("%w (%v)", syscall.EFAULT, s.failed(call, code))
	}
	return fmt.Errorf("%w (%v)", syscall.EIO, s.failed(call, code))
}

// Alloc implements copies.Driver. The driver touches the pages when it pins them.
func (s *stream) Alloc(lenBytes uint64) (uintptr, error) {
	var host uintptr
	if code := s.hostAlloc.CallPWU(unsafe.Pointer(&host), uintptr(lenBytes), hostAllocPortable); code != 0 {
		return 0, s.refused("cuMemHostAlloc", code)
	}
	return host, nil
}

// Free implements copies.Driver. It fails if the context is gone, and then the
// memory is, too.
func (s *stream) Free(host uintptr) { _ = s.hostFree.CallW(host) }

// Copy implements copies.Driver.
func (s *stream) Copy(toDevice bool, dev connectors.DevAddr, host uintptr, lenBytes uint64) error {
	if toDevice {
		if code := s.toDevice.CallWWWW(uintptr(dev), host, uintptr(lenBytes), s.handle); code != 0 {
			return s.broken("cuMemcpyHtoDAsync", code)
		}
		return nil
	}
	if code := s.toHost.CallWWWW(host, uintptr(dev), uintptr(lenBytes), s.handle); code != 0 {
		return s.broken("cuMemcpyDtoHAsync", code)
	}
	return nil
}

// Record implements copies.Driver.
func (s *stream) Record(event int) error {
	if code := s.eventRecord.CallWW(s.events[event], s.handle); code != 0 {
		return s.broken("cuEventRecord", code)
	}
	return nil
}

// Over implements copies.Driver.
func (s *stream) Over(event int) (bool, error) {
	switch code := s.eventQuery.CallW(s.events[event]); code {
	case 0:
		return true, nil
	case notReady:
		return false, nil
	default:
		return false, s.broken("cuEventQuery", code)
	}
}

// Await implements copies.Driver.
func (s *stream) Await(event int) error {
	if code := s.eventSync.CallW(s.events[event]); code != 0 {
		return s.broken("cuEventSynchronize", code)
	}
	return nil
}

// Drain implements copies.Driver. An error means that the context is lost, and
// nothing runs in it.
func (s *stream) Drain() { _ = s.streamSync.CallW(s.handle) }

// Close implements copies.Driver. What fails is gone with its context.
func (s *stream) Close() {
	for _, event := range s.events {
		if event != 0 {
			_ = s.eventDestroy.CallW(event)
		}
	}
	if s.handle != 0 {
		_ = s.streamDestroy.CallW(s.handle)
	}
	_ = s.setCurrent.CallW(0)
	_ = s.release.CallI(s.device)
}
