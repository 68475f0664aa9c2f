package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "libphoenix"

// pkg is what "go list -json" says of a package; see "go help list".
type pkg struct {
	ImportPath   string
	Dir          string
	Name         string
	Standard     bool
	Export       string // file with the types it exports
	GoFiles      []string
	CgoFiles     []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Module       *struct {
		Path string
		Main bool
	}
	Error *struct{ Err string }
}

func (p pkg) ours() bool { return p.Module != nil && p.Module.Main }

// rel is the path below the module: "core/gate"; "." for the root.
func (p pkg) rel() string { return rel(p.ImportPath) }

func rel(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// root is the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// list is every package of the module with everything it depends on, by import
// path. All files of ours are read, for the cache's sake (see the package
// comment).
func list(t *testing.T, extra ...string) map[string]pkg {
	t.Helper()
	dir := root(t)
	cmd := exec.Command("go", append(append([]string{"list", "-e", "-deps", "-json"}, extra...), "./...")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	pkgs := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if p.Error != nil {
			t.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		pkgs[p.ImportPath] = p
	}
	for _, f := range tree(t, dir) {
		if _, err := os.ReadFile(filepath.Join(dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	return pkgs
}

// sorted is the packages of pkgs for which keep holds, in order of path.
func sorted(pkgs map[string]pkg, keep func(pkg) bool) []pkg {
	var out []pkg
	for _, p := range pkgs {
		if keep(p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b pkg) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sources are the endings of files that people write and others read.
var sources = []string{".go", ".c", ".cc", ".cpp", ".cxx", ".h", ".m", ".s", ".S", ".py", ".sh"}

// tree is the source files below dir, relative to it; hidden and build
// folders are not looked at.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		hidden := strings.HasPrefix(d.Name(), ".") && name != "."
		if d.IsDir() && (hidden || name == "build") {
			return filepath.SkipDir
		}
		if !d.IsDir() && slices.Contains(sources, filepath.Ext(path)) {
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// under says whether path is what the pattern means: itself, or for "x/..."
// x and everything below it.
func under(path, pattern string) bool {
	base, all := strings.CutSuffix(pattern, "/...")
	return path == base || all && strings.HasPrefix(path, base+"/")
}

func underAny(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return under(path, p) })
}

// report fails the test with every complaint.
func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}

// expect compares the complaints about a made-up package with the parts that
// they must contain, in order.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d complaints, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("complaint %q does not say %q", got[i], want[i])
		}
	}
}
