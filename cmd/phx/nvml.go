package main

import (
	"fmt"
	"syscall"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"libphoenix/connectors/nvidia/ordinals"
	"libphoenix/internal/pci"
)

// inventory lists GPUs through go-nvml. It implements ordinals.Inventory.
type inventory struct{ api nvml.Interface }

// GPUs implements ordinals.Inventory. ENODEV: NVML is missing or refuses.
func (n inventory) GPUs() ([]ordinals.GPU, error) {
	if code := n.api.Init(); code != nvml.SUCCESS {
		return nil, refused("start NVML", code)
	}
	defer n.api.Shutdown()
	count, code := n.api.DeviceGetCount()
	if code != nvml.SUCCESS {
		return nil, refused("count GPUs", code)
	}
	gpus := make([]ordinals.GPU, count)
	for i := range gpus {
		device, code := n.api.DeviceGetHandleByIndex(i)
		if code != nvml.SUCCESS {
			return nil, refused(fmt.Sprintf("look at GPU %d", i), code)
		}
		var err error
		if gpus[i], err = describe(device); err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
	}
	return gpus, nil
}

func describe(device nvml.Device) (g ordinals.GPU, err error) {
	at, code := device.GetPciInfo()
	if code != nvml.SUCCESS {
		return g, refused("read its PCI address", code)
	}
	g.Address = pci.Address{Domain: at.Domain, Bus: uint8(at.Bus), Device: uint8(at.Device)}
	if g.UUID, code = device.GetUUID(); code != nvml.SUCCESS {
		return g, refused("read its UUID", code)
	}
	if g.Model, code = device.GetName(); code != nvml.SUCCESS {
		return g, refused("read its name", code)
	}
	now, _, code := device.GetMigMode()
	switch {
	case code == nvml.ERROR_NOT_SUPPORTED || code == nvml.ERROR_FUNCTION_NOT_FOUND || code == nvml.SUCCESS && now != nvml.DEVICE_MIG_ENABLE:
		return g, nil
	case code != nvml.SUCCESS:
		return g, refused("read its MIG mode", code)
	}
	g.MIG = true
	most, code := device.GetMaxMigDeviceCount()
	if code != nvml.SUCCESS {
		return g, refused("count its MIG devices", code)
	}
	for i := range most {
		instance, code := device.GetMigDeviceHandleByIndex(i)
		if code == nvml.ERROR_NOT_FOUND {
			continue // places may be empty
		}
		if code != nvml.SUCCESS {
			return g, refused("look at its MIG devices", code)
		}
		uuid, code := instance.GetUUID()
		if code != nvml.SUCCESS {
			return g, refused("read the UUID of a MIG device", code)
		}
		g.Instances = append(g.Instances, uuid)
	}
	return g, nil
}

func refused(what string, code nvml.Return) error {
	return fmt.Errorf("%s: %w (%v)", what, syscall.ENODEV, code)
}
