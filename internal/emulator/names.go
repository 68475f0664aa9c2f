package emulator

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// controlRoot is the folder of the control names; it does not exist.
const controlRoot = "/dev/phx_emulate"

// ControlVariable tells the program where the control names are.
const ControlVariable = "PHX_EMULATE_CONTROL"

// sysfsClass is the module's folder below the root of sysfs.
const sysfsClass = "class/phxfs-generic"

// nodePrefix is the name of a device node without its index.
const nodePrefix = "phxfs_dev"

// namespace is the files that only the program sees. Read-only.
type namespace struct {
	nodeDirs []string // folders of the device nodes
	classes  []string // the module's folders in sysfs
}

func newNamespace(devDir, sysfsRoot string) namespace {
	n := namespace{
		nodeDirs: []string{"/dev"},
		classes:  []string{filepath.Join("/sys", sysfsClass)},
	}
	if filepath.IsAbs(devDir) {
		n.nodeDirs = append(n.nodeDirs, filepath.Clean(devDir))
	}
	if filepath.IsAbs(sysfsRoot) {
		n.classes = append(n.classes, filepath.Join(sysfsRoot, sysfsClass))
	}
	return n
}

type nameKind int

const (
	elsewhere nameKind = iota // none of ours: the kernel's
	node                      // a device node, which may lie beyond the last device
	sysfs                     // in the module's part of sysfs
	control                   // a command
)

// name is a path that means something here.
type name struct {
	kind  nameKind
	index int    // of a node
	rest  string // sysfs: path below the class folder; control: the command
}

// mayBeOurs is a quick look at a path as the program wrote it: every path that
// find knows contains this, unless it starts in a folder of ours, where the
// kernel finds it.
func mayBeOurs(path string) bool { return strings.Contains(path, "phx") }

// find says what an absolute, clean path means.
func (n namespace) find(path string) name {
	dir, base := filepath.Split(path)
	dir = filepath.Clean(dir)
	if digits, ok := strings.CutPrefix(base, nodePrefix); ok {
		index, err := strconv.Atoi(digits)
		for _, d := range n.nodeDirs {
			if dir == d && err == nil && index >= 0 && digits == strconv.Itoa(index) {
				return name{kind: node, index: index}
			}
		}
	}
	for _, class := range n.classes {
		if rest, ok := below(path, class); ok {
			return name{kind: sysfs, rest: rest}
		}
	}
	if rest, ok := below(path, controlRoot); ok {
		return name{kind: control, rest: rest}
	}
	return name{}
}

// below is what is left of path below the folder dir; "" for dir itself.
func below(path, dir string) (string, bool) {
	if path == dir {
		return "", true
	}
	return strings.CutPrefix(path, dir+"/")
}

func nodeName(index int) string { return fmt.Sprintf("%s%d", nodePrefix, index) }

// String is the name as the program finds it without other folders set.
func (n name) String() string {
	switch n.kind {
	case node:
		return "/dev/" + nodeName(n.index)
	case sysfs:
		return filepath.Join("/sys", sysfsClass, n.rest)
	case control:
		return filepath.Join(controlRoot, n.rest)
	}
	return "another file"
}
