package archtest

import (
	"fmt"
	"strings"
	"testing"
)

// A room is a package, or with "/..." a package and those below it, and what
// its code (not its tests) may import.
type room struct {
	path   string
	ours   []string // packages of this module
	others []string // packages of other modules; the standard library is free
}

const (
	xsys    = "golang.org/x/sys/..."
	iouring = "github.com/iceber/iouring-go/syscall"
	nvml    = "github.com/NVIDIA/go-nvml/..."
)

// rooms are the arrows of docs/architecture.md. The first room that fits a
// package is its own.
var rooms = []room{
	{"cabi", []string{"core", "core/gate", "connectors", "connectors/registry", "engine", "internal/stack", "internal/version"}, []string{xsys}},
	{"core", []string{"core/gate", "core/staging", "engine", "connectors", "internal/phxdev"}, []string{xsys}},
	{"core/gate", []string{"internal/futex"}, []string{xsys}},
	{"core/staging", []string{"engine", "connectors", "internal/futex"}, nil},
	{"engine", []string{"internal/futex", "internal/uring", "internal/smallfile"}, []string{xsys}},
	{"connectors", nil, nil},
	{"connectors/registry", []string{"connectors", "connectors/..."}, nil},
	{"connectors/host", []string{"connectors"}, []string{xsys}},
	{"connectors/copies", []string{"connectors", "internal/dl"}, nil},
	{"connectors/life", []string{"connectors"}, nil},
	{"connectors/lookup", []string{"internal/pci"}, nil},
	{"connectors/nvidia", []string{"connectors", "connectors/copies", "connectors/life", "connectors/lookup", "connectors/nvidia/ordinals", "internal/dl", "internal/pci"}, nil},
	{"connectors/nvidia/ordinals", []string{"internal/pci"}, nil},
	{"connectors/amd", []string{"connectors", "connectors/copies", "connectors/life", "connectors/lookup", "internal/dl", "internal/pci"}, nil},
	{"connectors/ascend", []string{"connectors", "connectors/lookup", "internal/dl", "internal/pci"}, nil},
	{"internal/dl", nil, nil},
	{"internal/pci", []string{"internal/smallfile"}, []string{xsys}},
	{"internal/phxdev", nil, []string{xsys}},
	{"internal/futex", nil, []string{xsys}},
	{"internal/smallfile", nil, []string{xsys}},
	{"internal/stack", nil, nil},
	{"internal/uring", nil, []string{xsys, iouring}},
	{"internal/version", nil, nil},

	// Beside the library: what tests share, tools, checks.
	{"engine/fault", []string{"engine"}, []string{xsys}},
	{"engine/enginetest", []string{"engine", "engine/fault", "internal/need"}, []string{xsys, "go.uber.org/goleak"}},
	{"connectors/connectorstest", []string{"connectors", "internal/dl", "internal/dl/dltest", "internal/need"}, []string{xsys}},
	{"internal/dl/dltest", []string{"internal/need"}, nil},
	{"internal/need", nil, nil},
	{"internal/uring/uringtest", []string{"internal/uring"}, []string{xsys}},
	{"internal/archtest", nil, nil},
	{"internal/emulator", nil, []string{xsys}},
	{"cmd/phx", []string{"internal/emulator", "internal/version", "connectors", "connectors/nvidia/ordinals", "connectors/registry", "internal/pci"}, []string{xsys, "github.com/spf13/cobra", nvml}},
	{"test/...", []string{"./..."}, []string{xsys, "github.com/hanwen/go-fuse/v2/...", "pgregory.net/rapid", "go.uber.org/goleak"}},
	{"examples/...", nil, nil},
}

// beside are the packages that are not part of the shared library.
var beside = []string{"connectors/connectorstest", "engine/fault", "engine/enginetest", "internal/dl/dltest", "internal/need", "internal/uring/uringtest", "internal/emulator", "internal/archtest", "cmd/...", "test/...", "examples/..."}

// checkImports names each import that no arrow allows.
func checkImports(rooms []room, pkgs []pkg, standard func(string) bool) (complaints []string) {
	for _, p := range pkgs {
		var mine *room
		for i := range rooms {
			if under(p.rel(), rooms[i].path) {
				mine = &rooms[i]
				break
			}
		}
		if mine == nil {
			complaints = append(complaints, fmt.Sprintf("%s is in no room: draw it in docs/architecture.md and give it a line in rooms", p.rel()))
			continue
		}
		for _, imp := range p.Imports {
			switch {
			case imp == "C" || standard(imp):
			case imp == module || strings.HasPrefix(imp, module+"/"):
				if !underAny(rel(imp), mine.ours) && !underAny("./"+rel(imp), mine.ours) {
					complaints = append(complaints, fmt.Sprintf("%s imports %s: no arrow allows it", p.rel(), rel(imp)))
				}
			case !underAny(imp, mine.others):
				complaints = append(complaints, fmt.Sprintf("%s imports %s of another module", p.rel(), imp))
			}
		}
	}
	return complaints
}

// unwanted are packages of the standard library whose use leaves something
// behind in the caller's process. The first file that package os opens starts
// Go's poller, which keeps two descriptors open for good (internal/smallfile
// reads files without it); the others bring threads, signals or children.
var unwanted = []string{"os", "os/...", "net", "net/...", "io/ioutil", "plugin"}

// checkUnwanted names each import of them by the library's own packages.
func checkUnwanted(pkgs []pkg) (complaints []string) {
	for _, p := range pkgs {
		for _, imp := range p.Imports {
			if underAny(imp, unwanted) && !underAny(p.rel(), beside) {
				complaints = append(complaints, fmt.Sprintf("%s imports %s, which leaves traces in the caller's process", p.rel(), imp))
			}
		}
	}
	return complaints
}

// checkOnlyIn names each import of pattern outside the allowed packages; tests
// may import it.
func checkOnlyIn(pattern string, allowed []string, pkgs []pkg) (complaints []string) {
	for _, p := range pkgs {
		for _, imp := range p.Imports {
			if under(imp, pattern) && !underAny(p.rel(), allowed) {
				complaints = append(complaints, fmt.Sprintf("%s imports %s: only %s and tests may", p.rel(), imp, strings.Join(allowed, ", ")))
			}
		}
	}
	return complaints
}

func TestImportsFollowTheArrows(t *testing.T) {
	pkgs := list(t)
	standard := func(path string) bool { return pkgs[path].Standard }
	report(t, checkImports(rooms, sorted(pkgs, pkg.ours), standard))
}

func TestLibraryUsesNoPackageThatLeavesTraces(t *testing.T) {
	report(t, checkUnwanted(sorted(list(t), pkg.ours)))
}

func TestNVMLIsImportedByTheToolAndByTestsOnly(t *testing.T) {
	report(t, checkOnlyIn(nvml, []string{"cmd/phx"}, sorted(list(t), pkg.ours)))
}

func TestImportCheckerRefuses(t *testing.T) {
	standard := func(path string) bool { return !strings.Contains(path, ".") && !strings.HasPrefix(path, module) }
	for _, c := range []struct {
		path    string
		imports []string
		want    []string
	}{
		{"core", []string{"fmt", "libphoenix/engine", "golang.org/x/sys/unix"}, nil},
		{"core", []string{"libphoenix/connectors/host"}, []string{"core imports connectors/host"}},
		{"core", []string{"libphoenix/cabi", "libphoenix/internal/futex"}, []string{"cabi", "internal/futex"}},
		{"engine", []string{"libphoenix/core", "libphoenix/connectors"}, []string{"engine imports core", "engine imports connectors"}},
		{"connectors/nvidia", []string{"C", "libphoenix/internal/phxdev"}, []string{"internal/phxdev"}},
		{"connectors/nvidia", []string{"github.com/NVIDIA/go-nvml/pkg/nvml"}, []string{"go-nvml"}},
		{"internal/uring", []string{"github.com/iceber/iouring-go"}, []string{"iouring-go of another"}},
		{"internal/uring", []string{"github.com/iceber/iouring-go/syscall"}, nil},
		{"internal/pci", []string{"libphoenix/internal/dl"}, []string{"internal/dl"}},
		{"internal/newroom", nil, []string{"in no room"}},
		{"connectors", []string{"golang.org/x/sysfoo"}, []string{"sysfoo"}},
		{"test/tools/x", []string{"libphoenix/core"}, nil},
	} {
		got := checkImports(rooms, []pkg{{ImportPath: module + "/" + c.path, Imports: c.imports}}, standard)
		expect(t, got, c.want...)
	}
}

func TestTraceCheckerRefuses(t *testing.T) {
	got := checkUnwanted([]pkg{
		{ImportPath: module + "/cmd/phx", Imports: []string{"os"}},
		{ImportPath: module + "/core", Imports: []string{"fmt", "path/filepath"}, TestImports: []string{"os"}},
		{ImportPath: module + "/engine", Imports: []string{"os/signal", "net"}},
		{ImportPath: module + "/internal/pci", Imports: []string{"os"}},
	})
	expect(t, got, "engine imports os/signal", "engine imports net", "internal/pci imports os")
}

func TestNVMLCheckerRefuses(t *testing.T) {
	const path = "github.com/NVIDIA/go-nvml/pkg/nvml"
	got := checkOnlyIn(nvml, []string{"cmd/phx"}, []pkg{
		{ImportPath: module + "/cmd/phx", Imports: []string{path}},
		{ImportPath: module + "/connectors/nvidia", TestImports: []string{path}},
		{ImportPath: module + "/core", Imports: []string{path}},
	})
	expect(t, got, "core imports "+path)
}
