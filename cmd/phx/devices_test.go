package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"libphoenix/connectors/nvidia/ordinals"
	"libphoenix/internal/pci"
)

// servers are go-nvml's machines with eight GPUs. GPU i has UUID GPU-i… and
// is at bus 10+16i, which the mocks' own PCI information does not say.
func servers() map[string]*server.Server {
	machines := map[string]*server.Server{"DGX A100": dgxa100.New(), "DGX H100": dgxh100.New()}
	for _, s := range machines {
		for i := range s.Devices {
			d := s.Devices[i].(*server.Device)
			d.UUID = fmt.Sprintf("GPU-%d%s", i, d.UUID[5:])
			d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
				return nvml.PciInfo{Domain: 1, Bus: uint32(0x10 + 16*i)}, nvml.SUCCESS
			}
		}
	}
	return machines
}

// split gives GPU i of s two MIG devices, in the places 1 and 2 of 3.
func split(s *server.Server, i int) {
	d := s.Devices[i].(*server.Device)
	d.MigMode = nvml.DEVICE_MIG_ENABLE
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 3, nvml.SUCCESS }
	d.GetMigDeviceHandleByIndexFunc = func(place int) (nvml.Device, nvml.Return) {
		if place == 0 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return &mock.Device{GetUUIDFunc: func() (string, nvml.Return) {
			return fmt.Sprintf("MIG-%d%d", i, place), nvml.SUCCESS
		}}, nvml.SUCCESS
	}
}

func TestOrdinalsOnEightGPUs(t *testing.T) {
	for name, s := range servers() {
		list, err := inventory{s}.GPUs()
		if err != nil || len(list) != 8 || list[3].Address != (pci.Address{Domain: 1, Bus: 0x40}) || list[3].MIG {
			t.Fatalf("%s: %+v, %v", name, list, err)
		}
		for _, c := range []struct{ visible, want string }{
			{"0,1,2,3,4,5,6,7", "01234567"},
			{"7,6,5,4,3,2,1,0", "76543210"},
			{"2, 5,0", "250"},
			{"4,8,1", "4"},
			{"4,-1,1", "4"},
			{"3,nonsense,1", "3"},
			{"", ""},
			{"GPU-6,GPU-1,GPU-3", "613"},
			{"GPU-6,2", "62"},
			{"GPU-6,GPU-,2", "6"},
			{list[5].UUID + "," + list[0].UUID, "50"},
			{"MIG-" + list[5].UUID + "/1/0", "5"},
		} {
			for _, order := range []string{"", "PCI_BUS_ID", "FASTEST_FIRST"} {
				visible, err := ordinals.Visible(list, ordinals.Settings{Visible: c.visible, Set: true, Order: order})
				got := ""
				for _, d := range visible {
					got += fmt.Sprint(d.Address.Bus/16 - 1)
				}
				if got != c.want || err != nil {
					t.Errorf("%s, CUDA_VISIBLE_DEVICES=%q: GPUs %q, %v; want %q", name, c.visible, got, err, c.want)
				}
			}
		}
		split(s, 3)
		if list, err = (inventory{s}).GPUs(); err != nil {
			t.Fatal(err)
		}
		for visible, want := range map[string]string{"MIG-32,0": "3 MIG-32", "3": "3 MIG-31", "1,0,3": "3 MIG-31", "MIG-3": "", "1,0": "1 "} {
			got := ""
			devices, err := ordinals.Visible(list, ordinals.Settings{Visible: visible, Set: true})
			if len(devices) > 0 {
				got = fmt.Sprint(devices[0].Index, " ", devices[0].Instance)
			}
			if got != want || err != nil {
				t.Errorf("%s, with MIG, CUDA_VISIBLE_DEVICES=%q: %q, %v; want %q", name, visible, got, err, want)
			}
		}
	}
}

func TestGPUsOfTwoModels(t *testing.T) {
	s, err := server.New(server.WithGPUs(gpus.A100_SXM4_40GB, gpus.H100_SXM5_80GB))
	if err != nil {
		t.Fatal(err)
	}
	list, err := inventory{s}.GPUs()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ordinals.Visible(list, ordinals.Settings{}); !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "A100") {
		t.Errorf("nobody can know which is the fastest: %v", err)
	}
	if got, err := ordinals.Visible(list, ordinals.Settings{Order: "PCI_BUS_ID"}); len(got) != 2 || err != nil {
		t.Errorf("in PCI order: %v, %v", got, err)
	}
}

func TestNVMLThatRefuses(t *testing.T) {
	for what, break_ := range map[string]func(*server.Server, *server.Device){
		"start NVML": func(s *server.Server, _ *server.Device) {
			s.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
		},
		"count GPUs": func(s *server.Server, _ *server.Device) {
			s.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
		},
		"GPU 2": func(_ *server.Server, d *server.Device) {
			d.GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
		},
		"its name": func(_ *server.Server, d *server.Device) {
			d.GetNameFunc = func() (string, nvml.Return) { return "", nvml.ERROR_UNKNOWN }
		},
		"PCI address": func(_ *server.Server, d *server.Device) {
			d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.ERROR_UNKNOWN }
		},
		"MIG mode": func(_ *server.Server, d *server.Device) {
			d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_UNKNOWN }
		},
	} {
		s := servers()["DGX H100"]
		break_(s, s.Devices[2].(*server.Device))
		if _, err := (inventory{s}).GPUs(); !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// finder answers as a connector of the given addresses would.
type finder struct {
	root    string
	visible []ordinals.Device
}

func (finder) Name() string     { return "NVIDIA" }
func (finder) PageSize() uint64 { return 65536 }
func (f finder) FindDevice(ordinal int) (int, error) {
	if ordinal >= len(f.visible) {
		return 0, fmt.Errorf("CUDA device %d: %w", ordinal, syscall.ENODEV)
	}
	return pci.FindIndex(f.root, f.visible[ordinal].Address)
}

func TestDevicesShowsWhatEachOrdinalMeans(t *testing.T) {
	root := t.TempDir()
	for index, address := range map[int]string{5: "0001:20:00.0", 2: "0001:10:00.0"} {
		dir := filepath.Join(root, "class/phxfs-generic", fmt.Sprintf("phxfs_dev%d", index))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "pci_bdf"), []byte(address+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := servers()["DGX A100"]
	settings := ordinals.Settings{Visible: "1,0,7", Set: true}
	list, _ := inventory{s}.GPUs()
	visible, _ := ordinals.Visible(list, settings)
	var out bytes.Buffer
	if err := (listing{finder{root, visible}, root, inventory{s}, settings}).print(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 7 || !strings.Contains(lines[1], "8 GPUs") || !strings.Contains(lines[1], "CUDA_VISIBLE_DEVICES=1,0,7") {
		t.Fatalf("%s", &out)
	}
	for i, want := range []string{
		"0 " + list[1].UUID + " 0001:20:00.0 5 5",
		"1 " + list[0].UUID + " 0001:10:00.0 2 2",
		"2 " + list[7].UUID + " 0001:80:00.0 - -1: no phxfs device has PCI address 0001:80:00.0",
	} {
		if got := strings.Join(strings.Fields(lines[3+i]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %q, want %q", got, want)
		}
	}
	s.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
	out.Reset()
	err := listing{finder{root: root}, root, inventory{s}, settings}.print(&out)
	if err == nil || !strings.Contains(out.String(), "start NVML") || !strings.Contains(out.String(), "-1: CUDA device 0") {
		t.Errorf("no NVML and no CUDA: %v\n%s", err, &out)
	}
}

func TestDevicesOfTheHostConnector(t *testing.T) {
	t.Setenv("PHXFS_VENDOR", "host")
	if status, stdout, stderr := call("devices"); status != 0 || strings.Count(stdout, "\n") != 10 || stderr != "" {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	t.Setenv("PHXFS_VENDOR", "nonsense")
	if status, _, stderr := call("devices"); status != 1 || !strings.Contains(stderr, "nonsense") {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
}
