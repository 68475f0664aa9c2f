// Package connectorstest is what every connector has to do, whatever its
// vendor: one suite, run by the tests of each, on stand-ins for the vendor's
// libraries.
package connectorstest

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"libphoenix/connectors"
)

// Vendor is a connector and what stands in for its libraries.
type Vendor struct {
	// New makes a connector that looks for the libraries in a folder.
	New func(libraries, sysfsRoot string) connectors.Connector

	Name      string
	PageSize  uint64    // without a module that announces one
	Announced bool      // the module's page size counts
	Libraries []Library // none: the connector needs none, and all devices are there
	Init      string    // the function that starts the first library
	Staging   *Staging  // nil: none
}

// addresses are of every kind: domains, functions, both cases.
var addresses = [8]string{
	"0000:1a:00.0", "0000:1A:00.7", "0001:1a:00.0", "00ab:ff:1f.7",
	"0000:c1:00.1", "ffff:C1:00.0", "0000:3b:10.2", "10000:01:00.0",
}

// index is that of the phxfs device at addresses[i].
func index(i int) int { return (5*i + 3) % 8 }

// Run runs the suite.
func Run(t *testing.T, v Vendor) {
	t.Run("name_and_page_size", v.nameAndPageSize)
	t.Run("ordinals_that_are_none", v.noOrdinals)
	if len(v.Libraries) == 0 {
		t.Run("all_devices_are_there", v.allDevices)
	} else {
		folder := t.TempDir()
		for _, l := range v.Libraries {
			l.Install(t, folder)
		}
		t.Run("ordinals_under_permutations", func(t *testing.T) { v.permutations(t, folder) })
		t.Run("threads_race_to_the_first_device", func(t *testing.T) { v.race(t, folder) })
		t.Run("library_that_does_not_start", func(t *testing.T) { v.doesNotStart(t, folder) })
		t.Run("nothing_is_remembered_but_the_library", func(t *testing.T) { v.later(t, folder) })
		t.Run("library_that_lacks_a_function", v.lacks)
	}
	_, stages := v.New(t.TempDir(), t.TempDir()).(connectors.Stager)
	if stages != (v.Staging != nil) {
		t.Errorf("stages: %v, the suite was told %v", stages, v.Staging != nil)
	}
	if v.Staging != nil {
		t.Run("staging", v.staging)
	}
}

func (v Vendor) nameAndPageSize(t *testing.T) {
	root := t.TempDir()
	c := v.New(t.TempDir(), root)
	if c.Name() != v.Name || c.PageSize() != v.PageSize {
		t.Errorf("name %q, page size %d; want %q, %d", c.Name(), c.PageSize(), v.Name, v.PageSize)
	}
	Announce(t, root, "phxfs_dev0", "page_size", "nonsense")
	Announce(t, root, "phxfs_dev1", "page_size", "8192")
	Announce(t, root, "phxfs_dev4", "page_size", "2097152")
	want := v.PageSize
	if v.Announced {
		want = 2 << 20
	}
	if got := c.PageSize(); got != want {
		t.Errorf("8192 and 2 MiB announced: %d, want %d", got, want)
	}
	Announce(t, root, "phxfs_dev4", "page_size", "4096")
	if got := c.PageSize(); got != want {
		t.Errorf("the size that callers align by changed to %d", got)
	}
	if got := testing.AllocsPerRun(100, func() { c.PageSize() }); got != 0 {
		t.Errorf("%v allocations per question, want 0", got)
	}
}

func (v Vendor) noOrdinals(t *testing.T) {
	c := v.New(t.TempDir(), t.TempDir())
	for _, ordinal := range []int{-1, math.MinInt32} {
		_, err := c.FindDevice(ordinal)
		Want(t, err, syscall.EINVAL, "device "+strconv.Itoa(ordinal))
	}
	_, err := c.FindDevice(8)
	Want(t, err, syscall.ENODEV, "device 8")
	if len(v.Libraries) > 0 {
		Want(t, err, syscall.ENODEV, "cannot load", v.Libraries[0].Name)
	}
}

func (v Vendor) allDevices(t *testing.T) {
	c := v.New(t.TempDir(), t.TempDir())
	for i := range 8 {
		if got, err := c.FindDevice(i); got != i || err != nil {
			t.Errorf("FindDevice(%d) = %d, %v", i, got, err)
		}
	}
}

// permutations: whatever order and choice of devices the vendor's variables
// make, the address decides.
func (v Vendor) permutations(t *testing.T, folder string) {
	root := t.TempDir()
	for i, a := range addresses {
		Announce(t, root, "phxfs_dev"+strconv.Itoa(index(i)), "pci_bdf", strings.ToUpper(a))
	}
	c := v.New(folder, root)
	orders := [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {3}, {6, 1}, {2, 2, 5}}
	for r := 1; r < 8; r++ {
		orders = append(orders, slices.Concat(orders[0][r:], orders[0][:r]))
	}
	for _, order := range orders {
		var shown []string
		for _, i := range order {
			shown = append(shown, addresses[i])
		}
		Show(t, shown...)
		for ordinal, i := range order {
			if got, err := c.FindDevice(ordinal); got != index(i) || err != nil {
				t.Errorf("devices %v: FindDevice(%d) = %d, %v; want %d", order, ordinal, got, err, index(i))
			}
		}
		for _, beyond := range []int{len(order), 1 << 31, 1 << 40} {
			_, err := c.FindDevice(beyond)
			Want(t, err, syscall.ENODEV, strconv.Itoa(len(order))+" devices")
		}
	}
	Show(t, "0000:1a:00.1") // another function, the same domain; another domain
	_, err := c.FindDevice(0)
	Want(t, err, syscall.ENODEV, "no phxfs device has PCI address 0000:1a:00.1")
	Show(t, "0002:1a:00.0")
	_, err = c.FindDevice(0)
	Want(t, err, syscall.ENODEV, "no phxfs device has PCI address 0002:1a:00.0")
}

func (v Vendor) race(t *testing.T, folder string) {
	root := t.TempDir()
	Show(t, addresses[0])
	Announce(t, root, "phxfs_dev3", "pci_bdf", addresses[0])
	c := v.New(folder, root)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			<-start
			if got, err := c.FindDevice(0); got != 3 || err != nil {
				t.Errorf("FindDevice = %d, %v; want 3", got, err)
			}
		})
	}
	close(start)
	wg.Wait()
}

func (v Vendor) doesNotStart(t *testing.T, folder string) {
	// Links: a library that was started once in this process stays so.
	fresh := v.copyTo(t, folder, t.TempDir())
	root := t.TempDir()
	Show(t, addresses[0])
	Announce(t, root, "phxfs_dev2", "pci_bdf", addresses[0])
	c := v.New(fresh, root)
	for _, code := range []string{"3", "999"} {
		t.Setenv("STANDIN_INIT", code)
		_, err := c.FindDevice(0)
		Want(t, err, syscall.ENODEV, v.Init, "code "+code)
	}
	t.Setenv("STANDIN_INIT", "0")
	if got, err := c.FindDevice(0); got != 2 || err != nil {
		t.Fatalf("once it starts: %d, %v; want 2", got, err)
	}
}

// later: libraries, the device and the module come one after another, and go.
func (v Vendor) later(t *testing.T, folder string) {
	fresh, root := t.TempDir(), t.TempDir()
	Show(t)
	c := v.New(fresh, root)
	for _, l := range v.Libraries {
		_, err := c.FindDevice(0)
		Want(t, err, syscall.ENODEV, "cannot load", l.Name)
		v.copyOne(t, l, folder, fresh)
	}
	_, err := c.FindDevice(0)
	Want(t, err, syscall.ENODEV, "0 devices")
	Show(t, addresses[0])
	_, err = c.FindDevice(0)
	Want(t, err, syscall.ENODEV, "no phxfs device at all", addresses[0])
	Announce(t, root, "phxfs_dev0", "pci_bdf", addresses[2])
	_, err = c.FindDevice(0)
	Want(t, err, syscall.ENODEV, "no phxfs device has PCI address "+addresses[0], "0: "+addresses[2])
	Announce(t, root, "phxfs_dev1", "pci_bdf", addresses[0])
	if got, err := c.FindDevice(0); got != 1 || err != nil {
		t.Fatalf("once everything is there: %d, %v; want 1", got, err)
	}
	Announce(t, root, "phxfs_dev1", "pci_bdf", addresses[3])
	_, err = c.FindDevice(0)
	Want(t, err, syscall.ENODEV, addresses[0])
	Show(t)
	_, err = c.FindDevice(0)
	Want(t, err, syscall.ENODEV, "0 devices")
}

func (v Vendor) lacks(t *testing.T) {
	folder := t.TempDir()
	for i, l := range v.Libraries {
		for _, before := range v.Libraries[:i] {
			before.Install(t, folder)
		}
		l.Install(t, folder, "-DLACKS")
		for _, rest := range v.Libraries[i+1:] {
			rest.Install(t, folder)
		}
		_, err := v.New(folder, t.TempDir()).FindDevice(0)
		Want(t, err, syscall.ENODEV, "no function "+l.Lacks, l.Name)
		folder = t.TempDir()
	}
}

func (v Vendor) copyTo(t *testing.T, from, to string) string {
	for _, l := range v.Libraries {
		v.copyOne(t, l, from, to)
	}
	return to
}

// copyOne makes a file of its own, which the loader takes for another library.
func (v Vendor) copyOne(t *testing.T, l Library, from, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(from, l.Name))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, l.Name), text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
