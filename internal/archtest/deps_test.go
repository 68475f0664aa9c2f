package archtest

import (
	"fmt"
	"slices"
	"testing"
)

// linked is what the shared library may contain of other modules.
var linked = []string{xsys, iouring}

// checkLinked walks everything the roots depend on and names each package of
// another module that is not in allowed, with the way it came in.
func checkLinked(pkgs map[string]pkg, roots []string, allowed []string) (complaints []string) {
	seen := map[string]bool{}
	var visit func(path string, way []string)
	visit = func(path string, way []string) {
		p, known := pkgs[path]
		if seen[path] || path == "C" || known && p.Standard {
			return
		}
		seen[path] = true
		way = append(slices.Clone(way), path)
		if !known {
			complaints = append(complaints, fmt.Sprintf("go list does not know %s (%v)", path, way))
			return
		}
		if !p.ours() && !underAny(path, allowed) {
			complaints = append(complaints, fmt.Sprintf("the library would link %s (%v)", path, way))
		}
		for _, imp := range p.Imports {
			visit(imp, way)
		}
	}
	for _, r := range roots {
		visit(r, nil)
	}
	return complaints
}

// The roots are cabi, which the shared library is built from, and every other
// package that is meant for it: those are checked before cabi imports them.
func TestSharedLibraryLinksTwoModulesAtMost(t *testing.T) {
	pkgs := list(t)
	var roots []string
	for _, p := range sorted(pkgs, pkg.ours) {
		if !underAny(p.rel(), beside) {
			roots = append(roots, p.ImportPath)
		}
	}
	if len(roots) == 0 {
		t.Fatal("go list reports no package of the library")
	}
	report(t, checkLinked(pkgs, roots, linked))
}

func TestLinkCheckerRefuses(t *testing.T) {
	main := &struct {
		Path string
		Main bool
	}{module, true}
	ours := func(path string, imports ...string) pkg {
		return pkg{ImportPath: module + "/" + path, Module: main, Imports: imports}
	}
	pkgs := map[string]pkg{}
	for _, p := range []pkg{
		ours("cabi", "C", "fmt", module+"/core", module+"/engine"),
		ours("core", "golang.org/x/sys/unix", "example.org/a"),
		ours("engine", "github.com/iceber/iouring-go/syscall", "github.com/iceber/iouring-go", module+"/lost"),
		{ImportPath: "fmt", Standard: true, Imports: []string{"example.org/never"}},
		{ImportPath: "golang.org/x/sys/unix"},
		{ImportPath: "github.com/iceber/iouring-go/syscall"},
		{ImportPath: "github.com/iceber/iouring-go", Imports: []string{"golang.org/x/sys/unix"}},
		{ImportPath: "example.org/a", Imports: []string{"example.org/b"}},
		{ImportPath: "example.org/b"},
	} {
		pkgs[p.ImportPath] = p
	}
	expect(t, checkLinked(pkgs, []string{module + "/cabi"}, linked),
		"link example.org/a ([libphoenix/cabi libphoenix/core example.org/a])",
		"link example.org/b",
		"link github.com/iceber/iouring-go (",
		"does not know libphoenix/lost",
	)
}
