package copies

import (
	"fmt"
	"syscall"
	"unsafe"

	"libphoenix/connectors"
	"libphoenix/internal/dl"
)

// Results and flags of cuda.h; hip_runtime_api.h gives them the same numbers.
const (
	invalidValue = 1   // CUDA_ERROR_INVALID_VALUE, hipErrorInvalidValue
	outOfMemory  = 2   // CUDA_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory
	notReady     = 600 // CUDA_ERROR_NOT_READY, hipErrorNotReady

	streamNonBlocking = 1 // CU_STREAM_NON_BLOCKING, hipStreamNonBlocking
)

// Call is a function of a vendor's library. It returns an int, 0 for success.
type Call struct {
	Name string // by which it is looked up
	dl.Func
}

// Runtime is the functions that CUDA and HIP have alike: other names, but the
// same signatures. A connector names them and calls Bind; then it is read-only.
type Runtime struct {
	HostAlloc     Call // (void **host, size_t bytes, unsigned flags)
	HostFree      Call // (void *host)
	StreamCreate  Call // (stream *, unsigned flags)
	StreamDestroy Call // (stream)
	StreamSync    Call // (stream)
	EventCreate   Call // (event *, unsigned flags)
	EventDestroy  Call // (event)
	EventRecord   Call // (event, stream)
	EventQuery    Call // (event)
	EventSync     Call // (event)

	HostFlags, EventFlags uint32
	Failed                func(call string, code int32) error // says what a code means
}

// Bind looks the functions up.
func (r *Runtime) Bind(lib *dl.Library) error {
	for _, c := range []*Call{
		&r.HostAlloc, &r.HostFree, &r.StreamCreate, &r.StreamDestroy, &r.StreamSync,
		&r.EventCreate, &r.EventDestroy, &r.EventRecord, &r.EventQuery, &r.EventSync,
	} {
		if err := lib.Bind(dl.Sym{Name: c.Name, Into: &c.Func}); err != nil {
			return err
		}
	}
	return nil
}

// Refused is why making something failed: ENOMEM, or ENODEV.
func (r *Runtime) Refused(call string, code int32) error {
	if code == outOfMemory {
		return fmt.Errorf("%w (%v)", syscall.ENOMEM, r.Failed(call, code))
	}
	return r.Failed(call, code)
}

// Broken is why a copy failed; nil for code 0. EFAULT: what was taken for an
// address has no memory any more. EIO.
func (r *Runtime) Broken(call string, code int32) error {
	switch code {
	case 0:
		return nil
	case invalidValue:
		return fmt.Errorf("%w (%v)", syscall.EFAULT, r.Failed(call, code))
	}
	return fmt.Errorf("%w (%v)", syscall.EIO, r.Failed(call, code))
}

// Device is what vendors do each in a way of their own.
type Device interface {
	// Enter makes the device current on the calling thread, which Leave undoes.
	Enter() error
	Leave()
	// Queue queues a copy on a stream. An error means that none was queued.
	Queue(toDevice bool, dev, host, lenBytes, stream uintptr) error
}

// device is a stream of a device, which is current on the thread that made it.
type device struct {
	Device
	*Runtime
	handle uintptr
	events [connectors.StreamDepth]uintptr
}

// Open enters d and makes a stream there, all or nothing.
func Open(r *Runtime, d Device) (connectors.Stream, error) {
	if err := d.Enter(); err != nil {
		return nil, err
	}
	s := &device{Device: d, Runtime: r}
	var made uintptr // C stores into a variable of its own, not into s, which holds pointers
	if code := r.StreamCreate.CallPU(unsafe.Pointer(&made), streamNonBlocking); code != 0 {
		s.Close()
		return nil, r.Refused(r.StreamCreate.Name, code)
	}
	s.handle = made
	for i := range s.events {
		if code := r.EventCreate.CallPU(unsafe.Pointer(&made), r.EventFlags); code != 0 {
			s.Close()
			return nil, r.Refused(r.EventCreate.Name, code)
		}
		s.events[i] = made
	}
	return New(s), nil
}

// Alloc implements Driver. The driver touches the pages when it pins them.
func (s *device) Alloc(lenBytes uint64) (uintptr, error) {
	var host uintptr
	if code := s.HostAlloc.CallPWU(unsafe.Pointer(&host), uintptr(lenBytes), s.HostFlags); code != 0 {
		return 0, s.Refused(s.HostAlloc.Name, code)
	}
	return host, nil
}

// Free implements Driver. It fails if the context is gone, and then the memory
// is, too.
func (s *device) Free(host uintptr) { _ = s.HostFree.CallW(host) }

// Copy implements Driver.
func (s *device) Copy(toDevice bool, dev connectors.DevAddr, host uintptr, lenBytes uint64) error {
	return s.Queue(toDevice, uintptr(dev), host, uintptr(lenBytes), s.handle)
}

// Record implements Driver.
func (s *device) Record(event int) error {
	return s.Broken(s.EventRecord.Name, s.EventRecord.CallWW(s.events[event], s.handle))
}

// Over implements Driver.
func (s *device) Over(event int) (bool, error) {
	code := s.EventQuery.CallW(s.events[event])
	if code == notReady {
		return false, nil
	}
	err := s.Broken(s.EventQuery.Name, code)
	return err == nil, err
}

// Await implements Driver.
func (s *device) Await(event int) error {
	return s.Broken(s.EventSync.Name, s.EventSync.CallW(s.events[event]))
}

// Drain implements Driver. An error means that the context is lost, and nothing
// runs in it.
func (s *device) Drain() { _ = s.StreamSync.CallW(s.handle) }

// Close implements Driver. What fails is gone with its context.
func (s *device) Close() {
	for _, event := range s.events {
		if event != 0 {
			_ = s.EventDestroy.CallW(event)
		}
	}
	if s.handle != 0 {
		_ = s.StreamDestroy.CallW(s.handle)
	}
	s.Leave()
}
