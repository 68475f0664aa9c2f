package ascend

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
)

// acl is a stand-in runtime: ordinals 0 and 1 are the physical devices 3 and
// 6. ACL_STANDIN_INIT and ACL_STANDIN_COUNT change what it answers.
const acl = `
#include <stdlib.h>
#include <stdint.h>
static int number(const char *name, int otherwise) { const char *s = getenv(name); return s ? atoi(s) : otherwise; }
static int ready = READY;
int inits;
#ifndef NO_INIT
int aclInit(const char *config) { int code = config ? 1 : number("ACL_STANDIN_INIT", 0); inits++; ready = !code || code == 100002; return code; }
#endif
int aclrtGetDeviceCount(uint32_t *n) { if (!ready) return 100001; *n = number("ACL_STANDIN_COUNT", 3); return 0; }
int aclrtGetPhyDevIdByLogicDevId(int32_t ordinal, int32_t *physical) { if (ordinal > 1) return 107001; *physical = 3 + 3 * ordinal; return 0; }
int init_calls(void) { return inits; }
`

// dcmi is a stand-in management library: two chips a card; with TRANSLATE the
// logical number is one less than the physical one.
const dcmi = `
#include <stdlib.h>
#include <stdint.h>
struct info { uint32_t id[4]; int domain; uint32_t bus, device, function; char rest[32]; };
int dcmi_init(void) { return getenv("DCMI_STANDIN_SICK") ? -8005 : 0; }
#ifdef TRANSLATE
int dcmi_get_device_logicid_from_phyid(unsigned physical, unsigned *logic) { *logic = physical - 1; return 0; }
#endif
int dcmi_get_card_id_device_id_from_logicid(int *card, int *device, unsigned logic) { *card = logic / 2; *device = logic % 2; return 0; }
#ifndef NO_PCIE
int dcmi_get_device_pcie_info_v2(int card, int device, struct info *info) {
	if (getenv("DCMI_STANDIN_BUS")) { info->bus = 0x100; return 0; }
	*info = (struct info){.domain = 1, .bus = 0xc0 + card, .device = 4, .function = device};
	info->rest[31] = 1;
	return 0;
}
#endif
`

// put writes one attribute of a phxfs device below a sysfs root.
func put(t *testing.T, root, name, attribute, text string) {
	t.Helper()
	dir := filepath.Join(root, "class/phxfs-generic", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, attribute), []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// want fails unless err carries errno and every part is in its text.
func want(t *testing.T, err error, errno syscall.Errno, parts ...string) {
	t.Helper()
	if !errors.Is(err, errno) {
		t.Fatalf("got %v, want %v", err, errno)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("error %q does not say %q", err, part)
		}
	}
}

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

func TestOrdinalsBecomeIndicesThroughCardAndChip(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	put(t, root, "phxfs_dev1", "pci_bdf", "0001:c1:04.1") // physical 3: card 1, chip 1
	put(t, root, "phxfs_dev6", "pci_bdf", "0001:C3:04.0") // physical 6: card 3, chip 0
	put(t, root, "phxfs_dev2", "pci_bdf", "0001:c1:04.0") // logical 2: card 1, chip 0
	put(t, root, "phxfs_dev3", "pci_bdf", "0001:c2:04.1") // logical 5: card 2, chip 1
	runtime := dltest.Build(t, dir, "libascendcl-good.so", acl, "-DREADY=0")
	for management, indices := range map[string][]int{
		dltest.Build(t, dir, "libdcmi-plain.so", dcmi):                     {1, 6},
		dltest.Build(t, dir, "libdcmi-translates.so", dcmi, "-DTRANSLATE"): {2, 3},
	} {
		c := New(Config{SysfsRoot: root, Runtime: runtime, Management: management})
		for ordinal, index := range indices {
			if got, err := c.FindDevice(ordinal); got != index || err != nil {
				t.Errorf("%s: FindDevice(%d) = %d, %v; want %d", management, ordinal, got, err, index)
			}
		}
		_, err := c.FindDevice(2)
		want(t, err, syscall.ENODEV, "ASCEND device 2", "aclrtGetPhyDevIdByLogicDevId", "107001")
		_, err = c.FindDevice(3)
		want(t, err, syscall.ENODEV, "3 devices")
		_, err = c.FindDevice(1 << 40)
		want(t, err, syscall.ENODEV, "3 devices")
		_, err = c.FindDevice(-1)
		want(t, err, syscall.EINVAL, "ASCEND device -1")
	}
	if got := inits(t, runtime); got != 1 {
		t.Errorf("aclInit was called %d times, want once", got)
	}
}

func TestRuntimeOfTheApplicationIsNotInitialisedAgain(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	put(t, root, "phxfs_dev4", "pci_bdf", "0001:c1:04.1")
	management := dltest.Build(t, dir, "libdcmi-app.so", dcmi)
	ready := dltest.Build(t, dir, "libascendcl-ready.so", acl, "-DREADY=1")
	if got, err := New(Config{SysfsRoot: root, Runtime: ready, Management: management}).FindDevice(0); got != 4 || err != nil {
		t.Fatalf("FindDevice = %d, %v; want 4", got, err)
	}
	if got := inits(t, ready); got != 0 {
		t.Errorf("aclInit was called %d times behind the application's back", got)
	}
	t.Setenv("ACL_STANDIN_INIT", "100002")
	again := dltest.Build(t, dir, "libascendcl-again.so", acl, "-DREADY=0")
	if got, err := New(Config{SysfsRoot: root, Runtime: again, Management: management}).FindDevice(0); got != 4 || err != nil {
		t.Fatalf("runtime that is initialised already: %d, %v; want 4", got, err)
	}
}

func TestEachWayToHaveNoDeviceReadsDifferently(t *testing.T) {
	dir := t.TempDir()
	runtime := dltest.Build(t, dir, "libascendcl-a.so", acl, "-DREADY=0")
	management := dltest.Build(t, dir, "libdcmi-a.so", dcmi)
	find := func(runtime, management string) error {
		_, err := New(Config{SysfsRoot: dir, Runtime: runtime, Management: management}).FindDevice(0)
		return err
	}
	want(t, find(dir+"/libascendcl-none.so", management), syscall.ENODEV, "cannot load", "libascendcl-none.so")
	want(t, find(runtime, dir+"/libdcmi-none.so"), syscall.ENODEV, "cannot load", "libdcmi-none.so")
	want(t, find(dltest.Build(t, dir, "libascendcl-old.so", acl, "-DREADY=0", "-DNO_INIT"), management), syscall.ENODEV, "no function aclInit")
	want(t, find(runtime, dltest.Build(t, dir, "libdcmi-old.so", dcmi, "-DNO_PCIE")), syscall.ENODEV, "no function dcmi_get_device_pcie_info_v2")

	t.Setenv("ACL_STANDIN_INIT", "507008")
	want(t, find(runtime, management), syscall.ENODEV, "aclInit", "507008")
	t.Setenv("ACL_STANDIN_INIT", "0")
	t.Setenv("DCMI_STANDIN_SICK", "1")
	want(t, find(runtime, management), syscall.ENODEV, "dcmi_init", "-8005")
	os.Unsetenv("DCMI_STANDIN_SICK")
	t.Setenv("DCMI_STANDIN_BUS", "1")
	want(t, find(runtime, management), syscall.ENODEV, "no PCI address", "0x100")
	os.Unsetenv("DCMI_STANDIN_BUS")
	t.Setenv("ACL_STANDIN_COUNT", "0")
	want(t, find(runtime, management), syscall.ENODEV, "0 devices")
}

func TestFailuresAreNotRemembered(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	c := New(Config{SysfsRoot: root, Runtime: dir + "/libascendcl-late.so", Management: dir + "/libdcmi-late.so"})
	_, err := c.FindDevice(0)
	want(t, err, syscall.ENODEV, "cannot load", "libascendcl-late.so")
	dltest.Build(t, dir, "libascendcl-late.so", acl, "-DREADY=0")
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "cannot load", "libdcmi-late.so")
	dltest.Build(t, dir, "libdcmi-late.so", dcmi)
	_, err = c.FindDevice(0)
	want(t, err, syscall.ENODEV, "no phxfs device", "0001:c1:04.1")
	put(t, root, "phxfs_dev0", "pci_bdf", "0001:c1:04.1")
	if got, err := c.FindDevice(0); got != 0 || err != nil {
		t.Fatalf("once everything is there: %d, %v; want 0", got, err)
	}
}

func TestPageSizeIsTheLargestAnnouncedElse4096(t *testing.T) {
	root := t.TempDir()
	c := New(Config{SysfsRoot: root})
	if c.Name() != "ASCEND" || c.PageSize() != 4096 {
		t.Errorf("name %q, page size %d; want ASCEND, 4096", c.Name(), c.PageSize())
	}
	put(t, root, "phxfs_dev4", "page_size", "2097152")
	if got := c.PageSize(); got != 2<<20 {
		t.Errorf("2 MiB announced: %d", got)
	}
}
