package nvidia

import (
	"bytes"
	"fmt"
	"syscall"
	"unsafe"

	"libphoenix/connectors/nvidia/ordinals"
	"libphoenix/internal/dl"
	"libphoenix/internal/pci"
)

// Results and sizes of nvml.h.
const (
	nvmlNotSupported = 3  // NVML_ERROR_NOT_SUPPORTED: no MIG in this GPU
	nvmlNotFound     = 6  // NVML_ERROR_NOT_FOUND: no MIG device in this place
	nvmlUUIDLen      = 96 // NVML_DEVICE_UUID_V2_BUFFER_SIZE
	nvmlNameLen      = 96 // NVML_DEVICE_NAME_V2_BUFFER_SIZE
)

// nvmlPCI is nvmlPciInfo_t.
type nvmlPCI struct {
	busIDLegacy                        [16]byte
	domain, bus, device, id, subsystem uint32
	busID                              [32]byte
}

// nvml is libnvidia-ml as far as ordinals need it, with its signatures as in
// nvml.h. All but errorString return an nvmlReturn_t, an int; a device is an
// opaque pointer. It implements ordinals.Inventory.
type nvml struct {
	lib                           *dl.Library
	init, shutdown                dl.Func // (void)
	count                         dl.Func // (unsigned *)
	byIndex                       dl.Func // (unsigned index, nvmlDevice_t *)
	pciInfo                       dl.Func // (nvmlDevice_t, nvmlPciInfo_t *)
	uuid, name                    dl.Func // (nvmlDevice_t, char *, unsigned len)
	migMode, migCount, migByIndex dl.Func // (nvmlDevice_t, unsigned *now, unsigned *pending), (…, unsigned *), (…, unsigned, nvmlDevice_t *); may be missing
	errorString                   dl.Func // const char *(nvmlReturn_t); may be missing
}

// openNVML loads the library and looks the functions up; it calls none.
func openNVML(library string) (*nvml, error) {
	n := new(nvml)
	var err error
	n.lib, err = dl.Load([]string{library},
		dl.Sym{Name: "nvmlInit_v2", Into: &n.init},
		dl.Sym{Name: "nvmlShutdown", Into: &n.shutdown},
		dl.Sym{Name: "nvmlDeviceGetCount_v2", Into: &n.count},
		dl.Sym{Name: "nvmlDeviceGetHandleByIndex_v2", Into: &n.byIndex},
		dl.Sym{Name: "nvmlDeviceGetPciInfo_v3", Into: &n.pciInfo},
		dl.Sym{Name: "nvmlDeviceGetUUID", Into: &n.uuid},
		dl.Sym{Name: "nvmlDeviceGetName", Into: &n.name},
		dl.Sym{Name: "nvmlDeviceGetMigMode", Into: &n.migMode, Optional: true},
		dl.Sym{Name: "nvmlDeviceGetMaxMigDeviceCount", Into: &n.migCount, Optional: true},
		dl.Sym{Name: "nvmlDeviceGetMigDeviceHandleByIndex", Into: &n.migByIndex, Optional: true},
		dl.Sym{Name: "nvmlErrorString", Into: &n.errorString, Optional: true},
	)
	return n, err
}

// GPUs implements ordinals.Inventory. NVML is started for this call alone: it
// keeps device files open.
func (n *nvml) GPUs() ([]ordinals.GPU, error) {
	if code := n.init.Call(); code != 0 {
		return nil, n.failed("nvmlInit", code)
	}
	defer n.shutdown.Call()
	var count uint32
	if code := n.count.CallP(unsafe.Pointer(&count)); code != 0 {
		return nil, n.failed("nvmlDeviceGetCount", code)
	}
	gpus := make([]ordinals.GPU, count)
	for i := range gpus {
		var device uintptr
		if code := n.byIndex.CallUP(uint32(i), unsafe.Pointer(&device)); code != 0 {
			return nil, n.failed("nvmlDeviceGetHandleByIndex", code)
		}
		if err := n.describe(device, &gpus[i]); err != nil {
			return nil, err
		}
	}
	return gpus, nil
}

func (n *nvml) describe(device uintptr, g *ordinals.GPU) (err error) {
	var at nvmlPCI
	if code := n.pciInfo.CallWP(device, unsafe.Pointer(&at)); code != 0 {
		return n.failed("nvmlDeviceGetPciInfo", code)
	}
	g.Address = pci.Address{Domain: at.domain, Bus: uint8(at.bus), Device: uint8(at.device)}
	if g.UUID, err = n.text("nvmlDeviceGetUUID", n.uuid, device, nvmlUUIDLen); err != nil {
		return err
	}
	if g.Model, err = n.text("nvmlDeviceGetName", n.name, device, nvmlNameLen); err != nil {
		return err
	}
	if n.migMode == 0 || n.migCount == 0 || n.migByIndex == 0 {
		return nil // a driver older than MIG
	}
	var now, pending, most uint32
	switch code := n.migMode.CallWPP(device, unsafe.Pointer(&now), unsafe.Pointer(&pending)); {
	case code == nvmlNotSupported || code == 0 && now == 0:
		return nil
	case code != 0:
		return n.failed("nvmlDeviceGetMigMode", code)
	}
	g.MIG = true
	if code := n.migCount.CallWP(device, unsafe.Pointer(&most)); code != 0 {
		return n.failed("nvmlDeviceGetMaxMigDeviceCount", code)
	}
	for i := range most {
		var instance uintptr
		switch code := n.migByIndex.CallWUP(device, i, unsafe.Pointer(&instance)); code {
		case 0:
		case nvmlNotFound:
			continue
		default:
			return n.failed("nvmlDeviceGetMigDeviceHandleByIndex", code)
		}
		uuid, err := n.text("nvmlDeviceGetUUID", n.uuid, instance, nvmlUUIDLen)
		if err != nil {
			return err
		}
		g.Instances = append(g.Instances, uuid)
	}
	return nil
}

func (n *nvml) text(call string, f dl.Func, device uintptr, size int) (string, error) {
	text := make([]byte, size)
	if code := f.CallWPU(device, unsafe.Pointer(&text[0]), uint32(size)); code != 0 {
		return "", n.failed(call, code)
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text), nil
}

func (n *nvml) failed(call string, code int32) error {
	text := ""
	if n.errorString != 0 {
		text = n.errorString.TextI(code)
	}
	return n.lib.Failed(call, code, text)
}

// addressByNVML is the PCI address of an ordinal without CUDA's help.
func (c *Connector) addressByNVML(ordinal int) (pci.Address, error) {
	n, err := c.nvml.Get(func() (*nvml, error) { return openNVML(c.nvmlLibrary) }, func(n *nvml) { _ = n.lib.Close() })
	if err != nil {
		return pci.Address{}, err
	}
	gpus, err := n.GPUs()
	if err != nil {
		return pci.Address{}, err
	}
	settings := ordinals.Read(c.environment)
	visible, err := ordinals.Visible(gpus, settings)
	if err != nil {
		return pci.Address{}, err
	}
	if ordinal >= len(visible) {
		return pci.Address{}, fmt.Errorf("of %d GPUs this process is shown %d (CUDA_VISIBLE_DEVICES counts): %w", len(gpus), len(visible), syscall.ENODEV)
	}
	return visible[ordinal].Address, nil
}
