package ordinals

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"libphoenix/internal/pci"
)

// machine is n GPUs of one model.
func machine(n int) []GPU {
	gpus := make([]GPU, n)
	for i := range gpus {
		gpus[i] = GPU{UUID: fmt.Sprintf("GPU-%d%d00-1234", i/2, i%2), Model: "H100", Address: pci.Address{Bus: uint8(i + 1)}}
	}
	return gpus
}

func TestVisibleDevicesInOrder(t *testing.T) {
	for _, c := range []struct {
		visible string
		want    []int // NVML's indices
	}{
		{"0,1,2,3", []int{0, 1, 2, 3}},
		{"3,0,2", []int{3, 0, 2}},
		{" 2 , 1\t", []int{2, 1}},
		{"", nil},
		{"-1", nil},
		{"0,-1,1", []int{0}},
		{"1,4,0", []int{1}}, // there is no 4: the list ends
		{"1,x,0", []int{1}},
		{"1,,0", []int{1}},
		{"1.0", nil},
		{"0x1", nil},
		{"+1", nil},
		{"99999999999999999999", nil},
		{"GPU-1000-1234", []int{2}},
		{"GPU-11,GPU-00", []int{3, 0}},
		{"GPU-1", nil}, // two begin so
		{"GPU-", nil},
		{"GPU-00,GPU-2,GPU-01", []int{0}},
		{"GPU-11,0", []int{3, 0}},
		{"gpu-11", nil},
		{"MIG-11", nil},
		{"NoDevFiles", nil},
	} {
		got, err := Visible(machine(4), Settings{Visible: c.visible, Set: true})
		if err != nil {
			t.Errorf("%q: %v", c.visible, err)
		}
		var indices []int
		for _, d := range got {
			indices = append(indices, d.Index)
		}
		if !slices.Equal(indices, c.want) {
			t.Errorf("%q: GPUs %v, want %v", c.visible, indices, c.want)
		}
	}
	if got, err := Visible(machine(3), Settings{}); len(got) != 3 || err != nil || got[2].Index != 2 {
		t.Errorf("unset: %v, %v", got, err)
	}
	if got, err := Visible(nil, Settings{}); got != nil || err != nil {
		t.Errorf("no GPU: %v, %v", got, err)
	}
}

func TestWhatCannotBeKnownIsNotGuessed(t *testing.T) {
	mixed := machine(3)
	mixed[1].Model = "A30"
	idle := machine(2)
	idle[1].MIG = true
	for _, c := range []struct {
		name  string
		gpus  []GPU
		s     Settings
		known bool
		say   string
	}{
		{"fastest of two models", mixed, Settings{}, false, "CUDA_DEVICE_ORDER"},
		{"index among two models", mixed, Settings{Visible: "1", Set: true}, false, "H100, A30"},
		{"UUID among two models", mixed, Settings{Visible: "GPU-01", Set: true}, true, ""},
		{"PCI order of two models", mixed, Settings{Order: "PCI_BUS_ID"}, true, ""},
		{"twice the same", mixed, Settings{Visible: "GPU-00,GPU-00", Set: true}, false, "twice"},
		{"MIG without a device", idle, Settings{Visible: "1", Set: true}, false, "no MIG device"},
		{"MIG without a device, unset", idle, Settings{}, true, ""},
	} {
		_, err := Visible(c.gpus, c.s)
		if c.known != (err == nil) || err != nil && (!errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestOneMIGDeviceAndNothingElse(t *testing.T) {
	gpus := machine(3)
	gpus[1].MIG, gpus[1].Instances = true, []string{"MIG-aa", "MIG-ab"}
	for visible, want := range map[string]string{
		"MIG-ab":                "MIG-ab",
		"MIG-ab,MIG-aa":         "MIG-ab",
		"0,MIG-aa,2":            "MIG-aa",
		"1":                     "MIG-aa",
		"GPU-01":                "MIG-aa",
		"MIG-GPU-0100-1234/7/0": "MIG-aa",
		"MIG-a":                 "", // two begin so
		"MIG-GPU-9/7/0":         "",
		"0,1":                   "MIG-aa",
		"2,3,MIG-aa":            "GPU", // the list ends before
	} {
		got, err := Visible(gpus, Settings{Visible: visible, Set: true})
		switch {
		case err != nil:
			t.Errorf("%q: %v", visible, err)
		case want == "" && len(got) > 0 || want != "" && len(got) != 1:
			t.Errorf("%q: %+v", visible, got)
		case want == "GPU" && (got[0].Index != 2 || got[0].Instance != ""):
			t.Errorf("%q: %+v", visible, got)
		case want != "" && want != "GPU" && (got[0].Instance != want || got[0].Index != 1):
			t.Errorf("%q: %+v", visible, got)
		}
	}
	if got, err := Visible(gpus, Settings{}); err != nil || len(got) != 1 || got[0].Instance != "MIG-aa" {
		t.Errorf("unset: %+v, %v", got, err)
	}
}

func TestRead(t *testing.T) {
	s := Read(func(name string) (string, bool) { return name, name != "CUDA_DEVICE_ORDER" })
	if s != (Settings{Visible: "CUDA_VISIBLE_DEVICES", Set: true, Order: "CUDA_DEVICE_ORDER"}) {
		t.Errorf("%+v", s)
	}
}
