package nvidia

import (
	"unsafe"

	"libphoenix/connectors/lookup"
	"libphoenix/internal/dl"
	"libphoenix/internal/pci"
)

// Results of cuda.h.
const (
	notInitialized = 3   // CUDA_ERROR_NOT_INITIALIZED
	noDevice       = 100 // CUDA_ERROR_NO_DEVICE: there is none, or the process is shown none
)

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
func openDriver(library string) (d *driver, err error) {
	d = new(driver)
	d.lib, err = dl.Load([]string{library},
		dl.Sym{Name: "cuInit", Into: &d.init},
		dl.Sym{Name: "cuDeviceGetCount", Into: &d.count},
		dl.Sym{Name: "cuDeviceGet", Into: &d.get},
		dl.Sym{Name: "cuDeviceGetPCIBusId", Into: &d.pciBusID},
		dl.Sym{Name: "cuGetErrorString", Into: &d.errorString, Optional: true},
	)
	return d, err
}

func (d *driver) close() { _ = d.lib.Close() }

// start starts the driver if need be.
func (d *driver) start() error {
	if code := d.init.CallU(0); code != 0 {
		return d.failed("cuInit", code)
	}
	return nil
}

// device is the CUdevice of an ordinal, of a driver that was started.
func (d *driver) device(ordinal int) (int32, error) {
	var count, device int32
	if code := d.count.CallP(unsafe.Pointer(&count)); code != 0 {
		return 0, d.failed("cuDeviceGetCount", code)
	}
	if err := lookup.Counted(ordinal, int64(count), "CUDA_VISIBLE_DEVICES counts"); err != nil {
		return 0, err
	}
	if code := d.get.CallPI(unsafe.Pointer(&device), int32(ordinal)); code != 0 {
		return 0, d.failed("cuDeviceGet", code)
	}
	return device, nil
}

// address asks the started driver where a device is.
func (d *driver) address(ordinal int) (pci.Address, error) {
	device, err := d.device(ordinal)
	if err != nil {
		return pci.Address{}, err
	}
	text := make([]byte, 64)
	if code := d.pciBusID.CallPII(unsafe.Pointer(&text[0]), int32(len(text)), device); code != 0 {
		return pci.Address{}, d.failed("cuDeviceGetPCIBusId", code)
	}
	return lookup.Parse(text)
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
