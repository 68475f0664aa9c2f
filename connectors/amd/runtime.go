package amd

import (
	"unsafe"

	"libphoenix/connectors/lookup"
	"libphoenix/internal/dl"
	"libphoenix/internal/pci"
)

// runtime is libamdhip64 and the functions of it that we call, with their
// signatures as in hip_runtime_api.h. All but errorString return a hipError_t,
// an int. Set by openRuntime, then read-only.
type runtime struct {
	lib         *dl.Library
	init        dl.Func // (unsigned flags), flags 0
	count       dl.Func // (int *count)
	pciBusID    dl.Func // (char *text, int len, int ordinal)
	errorString dl.Func // const char *(hipError_t); may be missing
}

// openRuntime loads the library and looks the functions up; it calls none.
func openRuntime(libraries []string) (r *runtime, err error) {
	r = new(runtime)
	r.lib, err = dl.Load(libraries,
		dl.Sym{Name: "hipInit", Into: &r.init},
		dl.Sym{Name: "hipGetDeviceCount", Into: &r.count},
		dl.Sym{Name: "hipDeviceGetPCIBusId", Into: &r.pciBusID},
		dl.Sym{Name: "hipGetErrorString", Into: &r.errorString, Optional: true},
	)
	return r, err
}

func (r *runtime) close() { _ = r.lib.Close() }

// start starts the runtime if need be.
func (r *runtime) start() error {
	if code := r.init.CallU(0); code != 0 {
		return r.failed("hipInit", code)
	}
	return nil
}

// device fails if the runtime, which was started, has no such device.
func (r *runtime) device(ordinal int) error {
	var count int32
	if code := r.count.CallP(unsafe.Pointer(&count)); code != 0 {
		return r.failed("hipGetDeviceCount", code)
	}
	return lookup.Counted(ordinal, int64(count), "HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES count")
}

// address starts the runtime if need be and asks where a device is.
func (r *runtime) address(ordinal int) (pci.Address, error) {
	if err := r.start(); err != nil {
		return pci.Address{}, err
	}
	if err := r.device(ordinal); err != nil {
		return pci.Address{}, err
	}
	text := make([]byte, 64)
	if code := r.pciBusID.CallPII(unsafe.Pointer(&text[0]), int32(len(text)), int32(ordinal)); code != 0 {
		return pci.Address{}, r.failed("hipDeviceGetPCIBusId", code)
	}
	return lookup.Parse(text)
}

func (r *runtime) failed(call string, code int32) error {
	text := ""
	if r.errorString != 0 {
		text = r.errorString.TextI(code)
	}
	return r.lib.Failed(call, code, text)
}
