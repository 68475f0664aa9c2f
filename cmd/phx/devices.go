package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/spf13/cobra"

	"libphoenix/connectors"
	"libphoenix/connectors/nvidia/ordinals"
	"libphoenix/connectors/registry"
	"libphoenix/internal/pci"
)

func newDevices() *cobra.Command {
	return &cobra.Command{
		Use:   "devices",
		Short: "Show the GPUs of this machine and which phxfs device each ordinal gets",
		Long: `Show, for each ordinal that a process with this environment could use, the GPU
it means, its PCI address, the phxfs device with that address, and what
phxfs_find_dev would return and why. PHXFS_VENDOR, PHXFS_SYSFS_ROOT,
CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER count as they do for the library.

The PCI addresses and UUIDs of NVIDIA's GPUs are NVML's. phxfs_find_dev asks CUDA
first, and takes NVML's word where CUDA does not start.

Exit status: 1 if phxfs_find_dev would find no device at all.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, _ := os.LookupEnv("PHXFS_SYSFS_ROOT")
			vendor, _ := os.LookupEnv("PHXFS_VENDOR")
			conn, err := registry.Choose(vendor, registry.Options{SysfsRoot: root, LookupEnv: os.LookupEnv})
			if err != nil {
				return &failure{err}
			}
			l := listing{conn: conn, sysfsRoot: root}
			if conn.Name() == "NVIDIA" {
				l.gpus = inventory{nvml.New()}
				l.settings = ordinals.Read(os.LookupEnv)
			}
			return l.print(cmd.OutOrStdout())
		},
	}
}

// listing is what "phx devices" prints.
type listing struct {
	conn      connectors.Connector
	sysfsRoot string
	gpus      ordinals.Inventory // nil: this vendor has none
	settings  ordinals.Settings  // for gpus
}

func (l listing) print(out io.Writer) error {
	var visible []ordinals.Device
	fmt.Fprintf(out, "vendor %s\n", l.conn.Name())
	if l.gpus != nil {
		var err error
		if visible, err = l.visible(out); err != nil {
			fmt.Fprintf(out, "NVML does not say which GPUs a process is shown: %v\n", err)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ordinal\tGPU\tPCI address\tphxfs device\tphxfs_find_dev")
	found := false
	for ordinal := range max(pci.Devices, len(visible)) {
		index, err := l.conn.FindDevice(ordinal)
		if err != nil && ordinal > 0 && ordinal >= len(visible) {
			continue // nobody knows it; the reason is that of ordinal 0, or obvious
		}
		gpu, address, device := "-", "-", "-"
		if ordinal < len(visible) {
			d := visible[ordinal]
			gpu, address = strings.TrimSpace(d.UUID+" "+d.Instance), d.Address.String()
			if i, err := pci.FindIndex(l.sysfsRoot, d.Address); err == nil {
				device = strconv.Itoa(i)
			}
		}
		answer := strconv.Itoa(index)
		if err != nil {
			answer = "-1: " + err.Error()
		}
		found = found || err == nil
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", ordinal, gpu, address, device, answer)
	}
	if err := table.Flush(); err != nil {
		return &failure{fmt.Errorf("print the devices: %w", err)}
	}
	if !found {
		return &failure{errors.New("phxfs_find_dev finds no device")}
	}
	return nil
}

// visible says first what NVML lists, and what decides.
func (l listing) visible(out io.Writer) ([]ordinals.Device, error) {
	gpus, err := l.gpus.GPUs()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%d GPUs in the machine", len(gpus))
	if l.settings.Set {
		fmt.Fprintf(out, ", CUDA_VISIBLE_DEVICES=%s", l.settings.Visible)
	}
	if l.settings.Order != "" {
		fmt.Fprintf(out, ", CUDA_DEVICE_ORDER=%s", l.settings.Order)
	}
	fmt.Fprintln(out)
	return ordinals.Visible(gpus, l.settings)
}
