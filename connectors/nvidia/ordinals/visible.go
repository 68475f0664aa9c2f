package ordinals

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Device is a GPU, or one MIG device of it, that CUDA shows a process.
type Device struct {
	GPU
	Index    int    // NVML's
	Instance string // UUID of the MIG device; "": the GPU itself
}

// Visible lists the devices in the order of their ordinals.
// ENODEV: which they are cannot be told; the text says what would help.
func Visible(gpus []GPU, s Settings) ([]Device, error) {
	chosen, err := choose(gpus, s)
	if err != nil {
		return nil, err
	}
	// CUDA shows one MIG device at most, and beside it no GPU (MIG user guide,
	// "CUDA Device Enumeration").
	for i := range chosen {
		if d := &chosen[i]; d.MIG && d.Instance == "" {
			if len(d.Instances) == 0 {
				return nil, fmt.Errorf("%s has MIG mode on and no MIG device: %w", d.UUID, syscall.ENODEV)
			}
			d.Instance = d.Instances[0]
		}
	}
	if i := slices.IndexFunc(chosen, func(d Device) bool { return d.Instance != "" }); i >= 0 {
		return chosen[i : i+1], nil
	}
	return chosen, nil
}

// choose reads the list up to its first entry that is none.
func choose(gpus []GPU, s Settings) ([]Device, error) {
	var chosen []Device
	if !s.Set {
		if err := numbered(gpus, s.Order); err != nil {
			return nil, err
		}
		for i, g := range gpus {
			if !g.MIG || len(g.Instances) > 0 {
				chosen = append(chosen, Device{GPU: g, Index: i})
			}
		}
		return chosen, nil
	}
	for entry := range strings.SplitSeq(s.Visible, ",") {
		d, err := find(gpus, s.Order, strings.TrimSpace(entry))
		if errors.Is(err, errNone) {
			break
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(chosen, func(c Device) bool { return c.Index == d.Index && c.Instance == d.Instance }) {
			return nil, fmt.Errorf("CUDA_VISIBLE_DEVICES=%q names %s twice, and CUDA does not say what that means: %w", s.Visible, d.UUID, syscall.ENODEV)
		}
		chosen = append(chosen, d)
	}
	return chosen, nil
}

// errNone: an entry names nothing, which ends the list.
var errNone = errors.New("no such device")

// find is what an entry of the list names: an index, or the UUID of a GPU or a
// MIG device or the beginning of one, if no other begins so.
func find(gpus []GPU, order, entry string) (Device, error) {
	if i, err := strconv.ParseUint(entry, 10, 31); err == nil {
		if err := numbered(gpus, order); err != nil {
			return Device{}, err
		}
		if i >= uint64(len(gpus)) {
			return Device{}, errNone
		}
		return Device{GPU: gpus[i], Index: int(i)}, nil
	}
	// Before driver 470 a MIG device was MIG-GPU-<uuid>/<instance>/<compute instance>.
	if old, ok := strings.CutPrefix(entry, "MIG-GPU-"); ok {
		uuid, _, _ := strings.Cut(old, "/")
		entry = "GPU-" + uuid
	}
	if !strings.HasPrefix(entry, "GPU-") && !strings.HasPrefix(entry, "MIG-") {
		return Device{}, errNone
	}
	var found []Device
	for i, g := range gpus {
		if strings.HasPrefix(g.UUID, entry) {
			found = append(found, Device{GPU: g, Index: i})
		}
		for _, uuid := range g.Instances {
			if strings.HasPrefix(uuid, entry) {
				found = append(found, Device{GPU: g, Index: i, Instance: uuid})
			}
		}
	}
	if len(found) != 1 {
		return Device{}, errNone
	}
	return found[0], nil
}

// numbered says whether CUDA numbers the GPUs as NVML does. FASTEST_FIRST, the
// default, does where all are of one model.
func numbered(gpus []GPU, order string) error {
	if order == "PCI_BUS_ID" {
		return nil
	}
	for _, g := range gpus {
		if g.Model != gpus[0].Model {
			return fmt.Errorf("the GPUs are of several models (%s, %s), and without CUDA nobody knows which it calls the fastest; CUDA_DEVICE_ORDER=PCI_BUS_ID or UUIDs in CUDA_VISIBLE_DEVICES would tell: %w",
				gpus[0].Model, g.Model, syscall.ENODEV)
		}
	}
	return nil
}
