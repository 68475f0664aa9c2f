package amd

import (
	"bytes"
	"fmt"
	"math"
	"syscall"
	"unsafe"

	"libphoenix/internal/dl"
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
func openRuntime(libraries []string) (*runtime, error) {
	lib, err := dl.Open(libraries...)
	if err != nil {
		return nil, err
	}
	r := &runtime{lib: lib}
	err = lib.Bind(
		dl.Sym{Name: "hipInit", Into: &r.init},
		dl.Sym{Name: "hipGetDeviceCount", Into: &r.count},
		dl.Sym{Name: "hipDeviceGetPCIBusId", Into: &r.pciBusID},
		dl.Sym{Name: "hipGetErrorString", Into: &r.errorString, Optional: true},
	)
	if err != nil {
		_ = lib.Close()
		return nil, err
	}
	return r, nil
}

// busID starts the runtime if need be and asks it for the PCI address of a
// device, as text.
func (r *runtime) busID(ordinal int) (string, error) {
	if code := r.init.CallU(0); code != 0 {
		return "", r.failed("hipInit", code)
	}
	var count int32
	if code := r.count.CallP(unsafe.Pointer(&count)); code != 0 {
		return "", r.failed("hipGetDeviceCount", code)
	}
	if ordinal >= int(count) || ordinal > math.MaxInt32 {
		return "", fmt.Errorf("the runtime shows this process %d devices (HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES count): %w", count, syscall.ENODEV)
	}
	text := make([]byte, 64)
	if code := r.pciBusID.CallPII(unsafe.Pointer(&text[0]), int32(len(text)), int32(ordinal)); code != 0 {
		return "", r.failed("hipDeviceGetPCIBusId", code)
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text), nil
}

func (r *runtime) failed(call string, code int32) error {
	text := ""
	if r.errorString != 0 {
		text = r.errorString.TextI(code)
	}
	return r.lib.Failed(call, code, text)
}
