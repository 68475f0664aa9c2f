package ordinals

import "libphoenix/internal/pci"

// GPU is what NVML knows of one GPU.
type GPU struct {
	UUID    string      // "GPU-" and 32 hexadecimal digits with hyphens
	Model   string      // as nvmlDeviceGetName says
	Address pci.Address // function 0 for NVML, which knows no others
	MIG     bool        // MIG mode is on: its instances are CUDA's devices, not the GPU
	// Instances are the UUIDs of its MIG devices, "MIG-…", in NVML's order.
	Instances []string
}

// Inventory lists the GPUs of the machine. NVML's order is that of their PCI
// addresses, and heeds no environment.
type Inventory interface {
	GPUs() ([]GPU, error)
}

// Settings are the environment variables that CUDA reads.
type Settings struct {
	Visible string // CUDA_VISIBLE_DEVICES
	Set     bool   // it is set; unset means all GPUs, empty means none
	Order   string // CUDA_DEVICE_ORDER: PCI_BUS_ID, or anything else for FASTEST_FIRST
}

// Read fills Settings in through a lookup like os.LookupEnv.
func Read(lookup func(name string) (string, bool)) Settings {
	var s Settings
	s.Visible, s.Set = lookup("CUDA_VISIBLE_DEVICES")
	s.Order, _ = lookup("CUDA_DEVICE_ORDER")
	return s
}
