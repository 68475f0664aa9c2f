package ascend

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"libphoenix/connectors"
	"libphoenix/connectors/connectorstest"
	"libphoenix/internal/dl"
)

// acl is a stand-in runtime: ordinal n is the physical device n+3. READY: the
// application has initialised it.
var acl = connectorstest.Library{Name: "libascendcl-standin.so", Lacks: "aclInit", Source: `
#ifndef READY
#define READY 0
#endif
static int ready = READY;
int inits;
#ifndef LACKS
int aclInit(const char *config) { int code = config ? 1 : standin_init(); inits++; ready = !code || code == 100002; return code; }
#endif
int aclrtGetDeviceCount(uint32_t *n) { if (!ready) return 100001; *n = (uint32_t)standin_count(); return 0; }
int aclrtGetPhyDevIdByLogicDevId(int32_t ordinal, int32_t *physical) { if (getenv("ACL_STANDIN_SICK")) return 107001; *physical = ordinal + 3; return 0; }
int init_calls(void) { return inits; }
`}

// dcmi is a stand-in management library: two chips a card, and a card 1 that
// the first one is on. With TRANSLATE the logical number is one more than the
// physical one.
var dcmi = connectorstest.Library{Name: "libdcmi-standin.so", Lacks: "dcmi_get_device_pcie_info_v2", Source: `
struct info { uint32_t id[4]; int domain; uint32_t bus, device, function; char rest[32]; };
int dcmi_init(void) { return getenv("DCMI_STANDIN_SICK") ? -8005 : 0; }
#ifdef TRANSLATE
#define MORE 1
int dcmi_get_device_logicid_from_phyid(unsigned physical, unsigned *logic) { *logic = physical + MORE; return 0; }
#else
#define MORE 0
#endif
int dcmi_get_card_id_device_id_from_logicid(int *card, int *device, unsigned logic) { *card = (int)logic / 2; *device = logic % 2; return 0; }
#ifndef LACKS
int dcmi_get_device_pcie_info_v2(int card, int device, struct info *info) {
	char text[64];
	unsigned domain;
	if (getenv("DCMI_STANDIN_BUS")) { info->bus = 0x100; return 0; }
	if (standin_address(text, sizeof text, 2 * card + device - 3 - MORE)) return -8001;
	if (sscanf(text, "%x:%x:%x.%x", &domain, &info->bus, &info->device, &info->function) != 4) return -8002;
	info->domain = (int)domain;
	info->rest[31] = 1;
	return 0;
}
#endif
`}

var vendor = connectorstest.Vendor{
	New: func(libraries, sysfsRoot string) connectors.Connector {
		return New(Config{
			SysfsRoot: sysfsRoot,
			Runtime:   filepath.Join(libraries, acl.Name), Management: filepath.Join(libraries, dcmi.Name),
		})
	},
	Name: "ASCEND", PageSize: 4096, Announced: true, Libraries: []connectorstest.Library{acl, dcmi}, Init: "aclInit",
}

func TestConnector(t *testing.T) { connectorstest.Run(t, vendor) }

// inits asks the stand-in runtime how often it was initialised.
func inits(t *testing.T, path string) int32 {
	t.Helper()
	lib, err := dl.OpenLoaded(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	f, err := lib.Symbol("init_calls")
	if err != nil {
		t.Fatal(err)
	}
	return f.Call()
}

// A management library that can translate physical numbers is asked to.
func TestPhysicalNumbersAreTranslated(t *testing.T) {
	folder, root := t.TempDir(), t.TempDir()
	runtime := acl.Install(t, folder)
	dcmi.Install(t, folder, "-DTRANSLATE")
	connectorstest.Show(t, "0001:c1:04.1", "0001:c3:04.0")
	connectorstest.Announce(t, root, "phxfs_dev1", "pci_bdf", "0001:c1:04.1")
	connectorstest.Announce(t, root, "phxfs_dev6", "pci_bdf", "0001:c3:04.0")
	c := vendor.New(folder, root)
	for ordinal, index := range []int{1, 6} {
		if got, err := c.FindDevice(ordinal); got != index || err != nil {
			t.Errorf("FindDevice(%d) = %d, %v; want %d", ordinal, got, err, index)
		}
	}
	if got := inits(t, runtime); got != 1 {
		t.Errorf("aclInit was called %d times, want once", got)
	}
}

func TestRuntimeOfTheApplicationIsNotInitialisedAgain(t *testing.T) {
	root := t.TempDir()
	connectorstest.Show(t, "0001:c1:04.1")
	connectorstest.Announce(t, root, "phxfs_dev4", "pci_bdf", "0001:c1:04.1")
	folder := t.TempDir()
	dcmi.Install(t, folder)
	ready := acl.Install(t, folder, "-DREADY=1")
	if got, err := vendor.New(folder, root).FindDevice(0); got != 4 || err != nil {
		t.Fatalf("FindDevice = %d, %v; want 4", got, err)
	}
	if got := inits(t, ready); got != 0 {
		t.Errorf("aclInit was called %d times behind the application's back", got)
	}
	t.Setenv("STANDIN_INIT", "100002")
	folder = t.TempDir()
	dcmi.Install(t, folder)
	acl.Install(t, folder)
	if got, err := vendor.New(folder, root).FindDevice(0); got != 4 || err != nil {
		t.Fatalf("runtime that is initialised already: %d, %v; want 4", got, err)
	}
}

func TestEachQuestionThatFailsReadsDifferently(t *testing.T) {
	folder := t.TempDir()
	acl.Install(t, folder)
	dcmi.Install(t, folder)
	connectorstest.Show(t, "0001:c1:04.1")
	for _, c := range []struct {
		variable string
		says     []string
	}{
		{"ACL_STANDIN_SICK", []string{"aclrtGetPhyDevIdByLogicDevId", "107001"}},
		{"DCMI_STANDIN_SICK", []string{"dcmi_init", "-8005"}},
		{"DCMI_STANDIN_BUS", []string{"no PCI address", "0x100"}},
	} {
		t.Setenv(c.variable, "1")
		_, err := vendor.New(folder, t.TempDir()).FindDevice(0)
		connectorstest.Want(t, err, syscall.ENODEV, append(c.says, "ASCEND device 0")...)
		os.Unsetenv(c.variable)
	}
}
