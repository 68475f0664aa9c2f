package amd

import (
	"path/filepath"
	"syscall"
	"testing"

	"libphoenix/connectors"
	"libphoenix/connectors/connectorstest"
)

// hip is a stand-in runtime.
var hip = connectorstest.Library{Name: "libamdhip64-standin.so", Lacks: "hipGetDeviceCount", Source: `
int hipInit(unsigned flags) { return flags ? 1 : standin_init(); }
#ifndef LACKS
int hipGetDeviceCount(int *n) { *n = standin_count(); return getenv("HIP_STANDIN_NONE") ? 100 : 0; }
#endif
int hipDeviceGetPCIBusId(char *text, int len, int ordinal) { return standin_address(text, len, ordinal); }
const char *hipGetErrorString(int code) { return code == 100 ? "no ROCm-capable device is detected" : "unknown"; }
`}

var vendor = connectorstest.Vendor{
	New: func(libraries, sysfsRoot string) connectors.Connector {
		// The versions are tried in their order; the first is missing.
		path := filepath.Join(libraries, hip.Name)
		return New(Config{SysfsRoot: sysfsRoot, Libraries: []string{path + ".7", path}})
	},
	Name: "AMD", PageSize: 4096, Announced: true, Libraries: []connectorstest.Library{hip}, Init: "hipInit",
	Staging: &connectorstest.Staging{Source: "fake_hip.c", Alloc: "hipHostMalloc"},
}

func TestConnector(t *testing.T) { connectorstest.Run(t, vendor) }

func TestIdentityIsAskedOfEveryVersionOfTheRuntime(t *testing.T) {
	connectorstest.RunIdentity(t, vendor, connectorstest.Identity{
		Libraries: []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"}, Function: "hipPointerGetAttribute",
	})
}

// HIP reports this as an error of its own.
func TestRuntimeWithoutADeviceSaysSo(t *testing.T) {
	c := New(Config{Libraries: []string{hip.Install(t, t.TempDir())}})
	t.Setenv("HIP_STANDIN_NONE", "1")
	_, err := c.FindDevice(0)
	connectorstest.Want(t, err, syscall.ENODEV, "HIP device 0", "hipGetDeviceCount", "no ROCm-capable device is detected")
}
