package nvidia

import (
	"path/filepath"
	"syscall"
	"testing"

	"libphoenix/connectors"
	"libphoenix/connectors/connectorstest"
	"libphoenix/internal/dl"
)

// cuda is a stand-in driver.
var cuda = connectorstest.Library{Name: "libcuda-standin.so", Lacks: "cuInit", Source: `
static int ready;
#ifndef LACKS
int cuInit(unsigned flags) { int code = flags ? 1 : standin_init(); ready = !code; return code; }
#endif
int cuDeviceGetCount(int *n) { if (!ready) return 3; *n = standin_count(); return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = 70 + ordinal; return ordinal < 0 || ordinal >= standin_count() ? 101 : 0; }
int cuDeviceGetPCIBusId(char *text, int len, int device) { return standin_address(text, len, device - 70); }
int cuGetErrorString(int code, const char **text) {
	*text = code == 100 ? "no CUDA-capable device is detected" : code == 3 ? "initialization error" : 0;
	return *text ? 0 : 1;
}
`}

// noNVML is a library that no machine has: only the driver is asked.
const noNVML = "libnvidia-ml-none.so"

var vendor = connectorstest.Vendor{
	New: func(libraries, sysfsRoot string) connectors.Connector {
		return New(Config{SysfsRoot: sysfsRoot, Library: filepath.Join(libraries, cuda.Name), NVML: noNVML})
	},
	Name: "NVIDIA", PageSize: 65536, Libraries: []connectorstest.Library{cuda}, Init: "cuInit",
	Staging: &connectorstest.Staging{Source: "fake_cuda.c", Alloc: "cuMemHostAlloc"},
}

func TestConnector(t *testing.T) { connectorstest.Run(t, vendor) }

func TestIdentityFollowsTheLifeOfAnAllocation(t *testing.T) {
	connectorstest.RunIdentity(t, vendor, connectorstest.Identity{Libraries: []string{"libcuda.so.1"}, Function: "cuPointerGetAttribute"})
}

func TestDriverSaysWhyItDoesNotStart(t *testing.T) {
	c := New(Config{Library: cuda.Install(t, t.TempDir()), NVML: noNVML})
	t.Setenv("STANDIN_INIT", "100")
	_, err := c.FindDevice(0)
	connectorstest.Want(t, err, syscall.ENODEV, "CUDA device 0", "cuInit", "100", "no CUDA-capable device is detected")
	t.Setenv("STANDIN_INIT", "3")
	_, err = c.FindDevice(0)
	connectorstest.Want(t, err, syscall.ENODEV, "cuInit", "initialization error", "forked")
	t.Setenv("STANDIN_INIT", "0")
	connectorstest.Show(t, "not an address")
	_, err = c.FindDevice(0)
	connectorstest.Want(t, err, syscall.ENODEV, "not a PCI address")
}

func TestLibraryWithoutAFunctionIsUnloadedAgain(t *testing.T) {
	path := cuda.Install(t, t.TempDir(), "-DLACKS")
	_, err := New(Config{Library: path, NVML: noNVML}).FindDevice(0)
	connectorstest.Want(t, err, syscall.ENODEV, "no function")
	if _, err := dl.OpenLoaded(path); err == nil {
		t.Fatal("the library that was of no use is still loaded")
	}
}

func TestLibraryIsTheDriversOwn(t *testing.T) {
	if c := New(Config{}); c.library != "libcuda.so.1" {
		t.Fatalf("library %q", c.library)
	}
}
