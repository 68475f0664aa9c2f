package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// readers are the functions that see the environment of Go's start instead of
// the process's own, which setenv and os.environ change: the C shim reads it.
var readers = map[string][]string{
	"os":                    {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Clearenv"},
	"syscall":               {"Getenv", "Environ", "Setenv", "Unsetenv", "Clearenv"},
	"golang.org/x/sys/unix": {"Getenv", "Environ", "Setenv", "Unsetenv", "Clearenv"},
}

// checkEnv names each use of such a function in one file.
func checkEnv(name string, text []byte) (complaints []string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, 0)
	if err != nil {
		return []string{err.Error()}
	}
	imported := map[string][]string{} // local name of a package: its functions
	for _, imp := range f.Imports {
		path, _ := strconv.Unquote(imp.Path.Value)
		functions, ok := readers[path]
		if !ok {
			continue
		}
		local := filepath.Base(path)
		if imp.Name != nil {
			local = imp.Name.Name
		}
		if local == "." {
			complaints = append(complaints, fmt.Sprintf("%s: imports %s with a dot, which hides what it uses", fset.Position(imp.Pos()), path))
		}
		imported[local] = functions
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && slices.Contains(imported[id.Name], s.Sel.Name) {
				complaints = append(complaints, fmt.Sprintf("%s: %s.%s sees Go's copy of the environment; the C shim reads it", fset.Position(s.Pos()), id.Name, s.Sel.Name))
			}
		}
		return true
	})
	return complaints
}

func TestLibraryReadsNoEnvironmentThroughGo(t *testing.T) {
	for _, p := range sorted(list(t), pkg.ours) {
		if underAny(p.rel(), beside) {
			continue
		}
		for _, f := range slices.Concat(p.GoFiles, p.CgoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			report(t, checkEnv(filepath.Join(p.rel(), f), text))
		}
	}
}

func TestEnvironmentCheckerRefuses(t *testing.T) {
	const text = `package made
import ("os"; sys "syscall"; . "golang.org/x/sys/unix"; "fmt")
func f() {
	fmt.Println(os.Getenv("A"), os.Args)
	_, _ = os.LookupEnv("B")
	g := sys.Environ
	_ = g
	_ = struct{ Getenv int }{}.Getenv
}
`
	expect(t, checkEnv("made.go", []byte(text)), "unix with a dot", "os.Getenv", "os.LookupEnv", "sys.Environ")
	expect(t, checkEnv("made.go", []byte("package made\nimport \"os\"\nvar Getenv = os.Args\n")))
	expect(t, checkEnv("made.go", []byte("package")), "made.go")
}
