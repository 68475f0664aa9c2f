package registry

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"libphoenix/connectors"
)

func TestEveryVendorIsFoundInAnyCase(t *testing.T) {
	for _, want := range Names() {
		for _, name := range []string{want, strings.ToLower(want), want[:1] + strings.ToLower(want[1:])} {
			c, err := Choose(name, Options{SysfsRoot: t.TempDir()})
			if err != nil || c.Name() != want {
				t.Errorf("Choose(%q) = %v, %v; want %s", name, c, err, want)
			}
		}
	}
	if want := []string{"NVIDIA", "AMD", "ASCEND", "HOST"}; !slices.Equal(Names(), want) {
		t.Errorf("vendors %v, want %v", Names(), want)
	}
}

func TestUnknownVendorListsTheKnown(t *testing.T) {
	for _, name := range []string{"INTEL", " HOST", "HOST ", "HO", "NVIDIA,HOST", "\x00"} {
		c, err := Choose(name, Options{})
		if c != nil || !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "NVIDIA, AMD, ASCEND, HOST") {
			t.Errorf("Choose(%q) = %v, %v; want EINVAL and the list", name, c, err)
		}
	}
}

func TestDefaultVendorNeedsNoGPU(t *testing.T) {
	c, err := Choose("", Options{SysfsRoot: t.TempDir()})
	if err != nil || c.Name() != Default() {
		t.Fatalf("Choose(\"\") = %v, %v; want %s", c, err, Default())
	}
	// No module below the empty root: ENODEV whether or not there is a GPU.
	if c.Name() != "HOST" {
		if _, err := c.FindDevice(0); !errors.Is(err, syscall.ENODEV) {
			t.Errorf("FindDevice(0) = %v, want ENODEV", err)
		}
	}
}

func TestMisspeltDefaultIsAnErrorOfItsOwn(t *testing.T) {
	if _, err := choose("", "NVDIA", Options{}); !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "NVDIA") {
		t.Fatalf("got %v, want EINVAL naming the default", err)
	}
	if c, err := choose("host", "NVDIA", Options{}); err != nil || c.Name() != "HOST" {
		t.Fatalf("a named vendor: %v, %v", c, err)
	}
}

func TestHostHasTheCapabilitiesOfItsMemory(t *testing.T) {
	c, err := Choose("HOST", Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, embedded := c.(connectors.Embedded)
	_, copier := c.(connectors.Copier)
	_, stream := c.(connectors.StreamFuncs)
	_, liveness := c.(connectors.Liveness)
	if !embedded || !copier || !stream || liveness {
		t.Fatalf("embedded %v, copier %v, stream functions %v, liveness %v", embedded, copier, stream, liveness)
	}
}

// The rest of the build is the linker's: a test binary linked for HOST.
func TestLinkerChoosesTheDefault(t *testing.T) {
	if os.Getenv("PHX_TEST_DEFAULT") != "" {
		if got := os.Getenv("PHX_TEST_DEFAULT"); Default() != got {
			t.Fatalf("default %q, want %q", Default(), got)
		}
		return
	}
	binary := filepath.Join(t.TempDir(), "registry.test")
	build := exec.Command("go", "test", "-c", "-o", binary, "-ldflags", "-X libphoenix/connectors/registry.defaultVendor=HOST", ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(binary, "-test.run=^TestLinkerChoosesTheDefault$")
	run.Env = append(os.Environ(), "PHX_TEST_DEFAULT=HOST")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
