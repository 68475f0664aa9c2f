package nvidia

import (
	"strconv"
	"syscall"
	"testing"

	"libphoenix/connectors/connectorstest"
	"libphoenix/internal/dl/dltest"
)

// management is a stand-in NVML with two GPUs; the second has MIG mode on and
// MIG devices in its places 0 and 2. NVML_STANDIN_FAIL is the call that fails.
const management = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
static int up;
static int failing(const char *call) { const char *s = getenv("NVML_STANDIN_FAIL"); return !up || (s && !strcmp(s, call)) ? 999 : 0; }
int nvmlInit_v2(void) { if (up) return 998; up++; int code = failing("init"); if (code) up--; return code; }
int nvmlShutdown(void) { up--; return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return failing("count"); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) { *device = (void *)(0x70000000UL + i); return i > 1 ? 2 : failing("index"); }
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *at) {
	memset(at, 0, sizeof *at);
	at->domain = (unsigned)((unsigned long)device & 1) * 0x10000, at->bus = 0x65 + ((unsigned)(unsigned long)device & 1);
	return failing("pci");
}
int nvmlDeviceGetUUID(void *device, char *text, unsigned len) {
	unsigned long n = (unsigned long)device & 0xff;
	return snprintf(text, len, n < 2 ? "GPU-%lu%lu" : "MIG-%lu%lu", n, n) >= (int)len ? 7 : failing("uuid");
}
int nvmlDeviceGetName(void *device, char *text, unsigned len) { (void)device; snprintf(text, len, "standin"); return failing("name"); }
#ifndef NO_MIG
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending) { *now = *pending = (unsigned long)device & 1; return *now ? failing("mode") : 3; }
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *n) { (void)device; *n = 3; return failing("most"); }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned i, void **instance) { (void)device; *instance = (void *)(0x70000010UL + i); return i == 1 ? 6 : failing("instance"); }
#endif
const char *nvmlErrorString(int code) { return code == 999 ? "unknown of the stand-in" : ""; }
`

func TestWithoutCUDAOrdinalsComeFromNVMLAndTheEnvironment(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	connectorstest.Announce(t, root, "phxfs_dev5", "pci_bdf", "0000:65:00.0")
	connectorstest.Announce(t, root, "phxfs_dev2", "pci_bdf", "10000:66:00.0")
	env := map[string]string{}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	c := New(Config{SysfsRoot: root, Library: dir + "/libcuda-none.so", LookupEnv: lookup,
		NVML: dltest.Build(t, dir, "libnvidia-ml-good.so", management)})
	for _, q := range []struct {
		visible string
		ordinal int
		want    int
	}{
		{"0", 0, 5}, {"1", 0, 2}, {"GPU-1", 0, 2}, {"MIG-18", 0, 2}, {"GPU-00", 0, 5},
		{"0,1", 0, 2}, // CUDA shows one MIG device and nothing beside it
		{"0", 1, -1}, {"", 0, -1}, {"MIG-17", 0, -1}, {"1,0", 1, -1},
	} {
		env["CUDA_VISIBLE_DEVICES"] = q.visible
		got, err := c.FindDevice(q.ordinal)
		if q.want < 0 {
			connectorstest.Want(t, err, syscall.ENODEV, "libcuda-none.so", "CUDA_VISIBLE_DEVICES", "is shown "+strconv.Itoa(q.ordinal))
		} else if got != q.want || err != nil {
			t.Errorf("CUDA_VISIBLE_DEVICES=%q: FindDevice(%d) = %d, %v; want %d", q.visible, q.ordinal, got, err, q.want)
		}
	}

	// In a forked child CUDA does not start, NVML does. "No device" is CUDA's answer.
	env["CUDA_VISIBLE_DEVICES"] = "0"
	c = New(Config{SysfsRoot: root, Library: cuda.Install(t, dir), LookupEnv: lookup, NVML: dir + "/libnvidia-ml-good.so"})
	connectorstest.Show(t, "0000:65:00.0", "0000:AF:00.0")
	t.Setenv("STANDIN_INIT", "3")
	if got, err := c.FindDevice(0); got != 5 || err != nil {
		t.Errorf("forked: %d, %v; want 5", got, err)
	}
	t.Setenv("STANDIN_INIT", "100")
	_, err := c.FindDevice(0)
	connectorstest.Want(t, err, syscall.ENODEV, "no CUDA-capable device")
	t.Setenv("STANDIN_INIT", "0")
	connectorstest.Announce(t, root, "phxfs_dev6", "pci_bdf", "0000:af:00.0")
	if got, err := c.FindDevice(1); got != 6 || err != nil {
		t.Errorf("CUDA works: %d, %v; want its answer, 6", got, err)
	}
}

func TestNVMLThatDoesNotHelp(t *testing.T) {
	dir := t.TempDir()
	connectorstest.Announce(t, dir, "phxfs_dev0", "pci_bdf", "0000:65:00.0")
	c := New(Config{SysfsRoot: dir, Library: dir + "/libcuda-none.so", NVML: dir + "/libnvidia-ml-none.so"})
	_, err := c.FindDevice(0)
	connectorstest.Want(t, err, syscall.ENODEV, "libcuda-none.so", "NVML", "libnvidia-ml-none.so")

	c = New(Config{SysfsRoot: dir, Library: dir + "/libcuda-none.so", NVML: dltest.Build(t, dir, "libnvidia-ml-sick.so", management)})
	for _, call := range []string{"init", "count", "index", "pci", "uuid", "name", "mode", "most", "instance"} {
		t.Setenv("NVML_STANDIN_FAIL", call)
		_, err = c.FindDevice(0)
		connectorstest.Want(t, err, syscall.ENODEV, "999", "unknown of the stand-in")
	}
	t.Setenv("NVML_STANDIN_FAIL", "")
	c = New(Config{SysfsRoot: dir, Library: dir + "/libcuda-none.so", NVML: dltest.Build(t, dir, "libnvidia-ml-old.so", management, "-DNO_MIG")})
	if got, err := c.FindDevice(0); got != 0 || err != nil { // and the stand-in was down before
		t.Errorf("before MIG: %d, %v", got, err)
	}
}
