package nvidia

import (
	"bytes"
	"fmt"
	"math"
	"syscall"
	"unsafe"

	"libphoenix/internal/dl"
)

// notInitialized is CUDA_ERROR_NOT_INITIALIZED (cuda.h).
const notInitialized = 3

// driver is libcuda and the functions of it that we call, with their
// signatures as in cuda.h. All but errorString return a CUresult, an int.
// Set by openDriver, then read-only.
type driver struct {
	lib         *dl.Library
	init        dl.Func // (unsigned flags), flags 0
	count       dl.Func // (int *count)
	get         dl.Func // (CUdevice *device, int ordinal); CUdevice is an int
	pciBusID    dl.Func // (char *text, int len, CUdevice device)
	errorString dl.Func // (CUresult, const char **text); may be missing
}

// openDriver loads the library and looks the functions up; it calls none.
func openDriver(library string) (*driver, error) {
	lib, err := dl.Open(library)
	if err != nil {
		return nil, err
	}
	d := &driver{lib: lib}
	err = lib.Bind(
		dl.Sym{Name: "cuInit", Into: &d.init},
		dl.Sym{Name: "cuDeviceGetCount", Into: &d.count},
		dl.Sym{Name: "cuDeviceGet", Into: &d.get},
		dl.Sym{Name: "cuDeviceGetPCIBusId", Into: &d.pciBusID},
		dl.Sym{Name: "cuGetErrorString", Into: &d.errorString, Optional: true},
	)
	if err != nil {
		_ = lib.Close()
		return nil, err
	}
	return d, nil
}

// busID starts the driver if need be and asks it for the PCI address of a
// device, as text.
func (d *driver) busID(ordinal int) (string, error) {
	if code := d.init.CallU(0); code != 0 {
		return "", d.failed("cuInit", code)
	}
	var count, device int32
	if code := d.count.CallP(unsafe.Pointer(&count)); code != 0 {
		return "", d.failed("cuDeviceGetCount", code)
	}
	if ordinal >= int(count) || ordinal > math.MaxInt32 {
		return "", fmt.Errorf("the driver shows this process %d devices (CUDA_VISIBLE_DEVICES counts): %w", count, syscall.ENODEV)
	}
	if code := d.get.CallPI(unsafe.Pointer(&device), int32(ordinal)); code != 0 {
		return "", d.failed("cuDeviceGet", code)
	}
	text := make([]byte, 64)
	if code := d.pciBusID.CallPII(unsafe.Pointer(&text[0]), int32(len(text)), device); code != 0 {
		return "", d.failed("cuDeviceGetPCIBusId", code)
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text), nil
}

func (d *driver) failed(call string, code int32) error {
	text := ""
	if d.errorString != 0 {
		text = d.errorString.TextIP(code)
	}
	if code == notInitialized {
		// cuInit answers so in one case only, and after it no call does.
		text += "; in a process forked after its parent initialised CUDA, CUDA cannot be used"
	}
	return d.lib.Failed(call, code, text)
}
