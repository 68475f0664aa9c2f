package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withC are the packages that may use cgo and hold C files. Go compiles every
// C file that lies in a package's folder into the library.
var withC = []string{"cabi", "internal/dl", "connectors/..."}

// withAssembly are the packages that may hold Go assembly: what cannot be said
// in Go, a frame of a given size.
var withAssembly = []string{"internal/stack"}

var cEndings = []string{".c", ".cc", ".cpp", ".cxx", ".m", ".s", ".S"}

// checkC names the files that use cgo, or are compiled beside Go, where they
// may not. files are relative paths; read gives a file's text; packages are
// the folders that go list reports.
func checkC(files []string, packages []string, read func(string) ([]byte, error)) (complaints []string) {
	for _, f := range files {
		if slices.Contains(strings.Split(f, "/"), "testdata") {
			continue // not looked at by go build
		}
		if underAny(path.Dir(f), withC) || path.Ext(f) == ".s" && underAny(path.Dir(f), withAssembly) {
			continue
		}
		if slices.Contains(cEndings, path.Ext(f)) {
			if slices.Contains(packages, path.Dir(f)) {
				complaints = append(complaints, fmt.Sprintf("%s would be compiled into the Go package beside it", f))
			}
			continue
		}
		if path.Ext(f) != ".go" {
			continue
		}
		text, err := read(f)
		if err != nil {
			complaints = append(complaints, err.Error())
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f, text, parser.ImportsOnly)
		if err != nil {
			complaints = append(complaints, err.Error())
			continue
		}
		for _, imp := range tree.Imports {
			if imp.Path.Value == `"C"` {
				complaints = append(complaints, fmt.Sprintf("%s uses cgo: only %s may", f, strings.Join(withC, ", ")))
			}
		}
	}
	return complaints
}

func TestCLivesAtTheBordersOnly(t *testing.T) {
	dir := root(t)
	var packages []string
	for _, p := range sorted(list(t), pkg.ours) {
		packages = append(packages, p.rel())
	}
	report(t, checkC(tree(t, dir), packages, func(f string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, f)) }))
}

func TestCCheckerRefuses(t *testing.T) {
	text := map[string]string{
		"core/a.go":               "package core\nimport \"C\"\n",
		"core/b.go":               "//go:build never\npackage core\nimport (\n\t\"fmt\"\n\t\"C\"\n)\n",
		"core/c.go":               "package core\n// import \"C\"\nconst s = `import \"C\"`\n",
		"internal/pci/d.go":       "package pci\nimport \"C",
		"core/x.c":                "",
		"engine/y_amd64.s":        "",
		"internal/stack/s.s":      "",
		"internal/stack/s.c":      "",
		"test/c/z.c":              "",
		"core/testdata/t/t.go":    "package main\nimport \"C\"\n",
		"cabi/e.go":               "package cabi\nimport \"C\"\n",
		"cabi/e.c":                "",
		"connectors/nvidia/n.c":   "",
		"connectorsnot/nvidia.go": "package x\nimport \"C\"\n",
	}
	files := []string{}
	for f := range text {
		files = append(files, f)
	}
	slices.Sort(files)
	read := func(f string) ([]byte, error) { return []byte(text[f]), nil }
	expect(t, checkC(files, []string{"cabi", "core", "engine", "internal/stack", "connectors/nvidia"}, read),
		"connectorsnot/nvidia.go uses cgo",
		"core/a.go uses cgo",
		"core/b.go uses cgo",
		"core/x.c would be compiled",
		"engine/y_amd64.s would be compiled",
		"internal/pci/d.go",
		"internal/stack/s.c would be compiled",
	)
}

// pure are the packages that must build without a C compiler.
var pure = []string{"core/...", "engine/...", "connectors", "connectors/host", "internal/phxdev", "internal/pci", "internal/futex", "internal/smallfile", "internal/stack", "internal/uring", "internal/version", "connectors/nvidia/ordinals"}

// buildWithoutC builds packages below dir with CGO_ENABLED=0 and returns the
// compiler's words if that fails.
func buildWithoutC(dir string, packages []string) error {
	cmd := exec.Command("go", append([]string{"build"}, packages...)...)
	if len(packages) == 1 { // the only case in which go build writes a program
		cmd.Args = slices.Insert(cmd.Args, 2, "-o", os.DevNull)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("CGO_ENABLED=0 go build %v: %w\n%s", packages, err, out)
	}
	return nil
}

func TestCoreAndEngineBuildWithoutC(t *testing.T) {
	var packages []string
	for _, p := range sorted(list(t), pkg.ours) {
		if underAny(p.rel(), pure) {
			packages = append(packages, p.ImportPath)
		}
	}
	if len(packages) == 0 {
		t.Fatal("go list reports none of the packages that must build without C")
	}
	if err := buildWithoutC(root(t), packages); err != nil {
		t.Error(err)
	}
}

func TestBuildWithoutCNoticesCgo(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module made.up\n\ngo 1.26\n",
		"good/good.go": "package good\n",
		"bad/bad.go":   "package bad\n\nimport \"C\"\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := buildWithoutC(dir, []string{"./good"}); err != nil {
		t.Errorf("a package without C: %v", err)
	}
	if err := buildWithoutC(dir, []string{"./bad"}); err == nil {
		t.Error("a package with C passed")
	}
}
