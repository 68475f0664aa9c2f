package emulator

import "testing"

func TestNames(t *testing.T) {
	n := newNamespace("/run/nodes/", "/fake")
	for path, want := range map[string]name{
		"/dev/phxfs_dev0":                             {node, 0, ""},
		"/run/nodes/phxfs_dev12":                      {node, 12, ""},
		"/dev/phxfs_dev":                              {},
		"/dev/phxfs_dev01":                            {},
		"/dev/phxfs_dev-1":                            {},
		"/dev/phxfs_dev1x":                            {},
		"/dev/phxfs_dev99999999999999999999":          {},
		"/tmp/phxfs_dev0":                             {},
		"/dev/x/phxfs_dev0":                           {},
		"/sys/class/phxfs-generic":                    {sysfs, 0, ""},
		"/sys/class/phxfs-generic/phxfs_dev0/pci_bdf": {sysfs, 0, "phxfs_dev0/pci_bdf"},
		"/fake/class/phxfs-generic/phxfs_dev0":        {sysfs, 0, "phxfs_dev0"},
		"/sys/class/phxfs-generic2":                   {},
		"/sys/class":                                  {},
		"/dev/phx_emulate/revoke/0x10000":             {control, 0, "revoke/0x10000"},
		"/dev/phx_emulate":                            {control, 0, ""},
	} {
		if got := n.find(path); got != want {
			t.Errorf("%s: %#v, want %#v", path, got, want)
		}
		if want.kind != elsewhere && !mayBeOurs(path) {
			t.Errorf("%s is overlooked", path)
		}
	}
	for _, relative := range []string{"", "nodes", "./nodes"} {
		if n := newNamespace(relative, relative); len(n.nodeDirs) != 1 || len(n.classes) != 1 {
			t.Errorf("%q: %+v; want no second place", relative, n)
		}
	}
}
