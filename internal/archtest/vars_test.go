package archtest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutable are the package variables that may change, each with its reason.
var mutable = map[string]string{
	"libphoenix/cabi.process":                      "the one library object of the process; written once, by go_start",
	"libphoenix/connectors/registry.defaultVendor": "written by the linker (-X), which cannot write constants",
}

// parse type-checks Go text; export finds the file with a dependency's types,
// or is empty. Errors are not its business: the compiler reports them.
func parse(fset *token.FileSet, path string, text map[string][]byte, export func(string) string) ([]*ast.File, *types.Package, *types.Info, error) {
	var files []*ast.File
	for _, name := range sortedKeys(text) {
		f, err := parser.ParseFile(fset, name, text[name], 0)
		if err != nil {
			return nil, nil, nil, err
		}
		files = append(files, f)
	}
	lookup := func(path string) (io.ReadCloser, error) {
		if file := export(path); file != "" {
			return os.Open(file)
		}
		return nil, fmt.Errorf("no types of %s", path)
	}
	info := &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup), FakeImportC: true, Error: func(error) {}}
	p, _ := conf.Check(path, fset, files, info)
	return files, p, info, nil
}

func TestNoPackageVariableCanChange(t *testing.T) {
	pkgs := list(t, "-export")
	export := func(path string) string { return pkgs[path].Export }
	needed := map[string]bool{}
	for _, p := range sorted(pkgs, pkg.ours) {
		if underAny(p.rel(), beside) {
			continue
		}
		text := map[string][]byte{}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(p.Dir, name)
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text[name] = b
		}
		fset := token.NewFileSet()
		files, checked, info, err := parse(fset, p.ImportPath, text, export)
		if err != nil {
			t.Error(err)
			continue
		}
		found := checkVars(fset, files, checked, info)
		for _, name := range sortedKeys(found) {
			if _, ok := mutable[name]; ok {
				needed[name] = true
				continue
			}
			report(t, found[name])
		}
	}
	for _, name := range sortedKeys(mutable) {
		path := name[:strings.LastIndexByte(name, '.')]
		if _, exists := pkgs[path]; exists && !needed[name] {
			t.Errorf("%s is allowed to change and does not: drop it from mutable", name)
		}
	}
}

// head declares the variables that each case of the table test changes.
const head = `package made
import ("errors"; "sync"; "sync/atomic"; "os"; "C")
type box struct { n int; in *box; list [4]int }
func (b *box) set() {}
func (b box) get() {}
type held struct { deep []struct{ m map[string]*guard } }
type guard struct { mu sync.Mutex; self *guard }
type loop struct { next *loop }
var (
	n = someInt()
	p = &box{}
	b box
	table = []int{1, 2}
	array = [2]int{1, 2}
	names = map[string]int{"a": 1}
	errDone = errors.New("done")
	_ = n
	again *loop
)
func someInt() int { return 1 }
`

func TestVariableCheckerRefuses(t *testing.T) {
	pkgs := list(t, "-export")
	export := func(path string) string { return pkgs[path].Export }
	for _, c := range []struct{ body, want string }{
		// What is fine.
		{`func f() int { n := 2; n++; n = 3; return n + table[0] + names["a"] + len(array) }`, ""},
		{`func f() { b.get(); for _, x := range table { _ = x }; _ = table[:1] }`, ""},
		{`func f(n *int, p *box) { *n = 1; p.n = 2; _ = &p.n }`, ""},
		{`func f() { x := b; x.n = 1; _ = &x; y := &box{n: 1}; y.set(); _ = errDone }`, ""},
		{`func f() { type n struct{}; var p [2]int; p[0] = 1; delete(map[int]int{}, 1) }`, ""},
		{`func f() { box := struct{ n, table int }{}; box.n = 1; box.table = 2 }`, ""},
		{"const c = 4\nvar v = [...]string{\"x\"}", ""},
		// What is not.
		{`func f() { n = 2 }`, "made.n is assigned"},
		{`func f() { n += 2 }`, "made.n is assigned"},
		{`func f() { (n)++ }`, "made.n is assigned"},
		{`func init() { errDone = nil }`, "made.errDone is assigned"},
		{`func f() { b.n = 1 }`, "made.b is assigned"},
		{`func f() { p.in.list[2] = 1 }`, "made.p is assigned"},
		{`func f() { *p = box{} }`, "made.p is assigned"},
		{`func f() { table[0] = 1 }`, "made.table is assigned"},
		{`func f() { names["b"] = 1 }`, "made.names is assigned"},
		{`func f() { for n = range 3 {} }`, "made.n is assigned"},
		{`func f() { var x int; x, n = 1, 2; _ = x }`, "made.n is assigned"},
		{`func f() { _ = func() { n = 1 } }`, "made.n is assigned"},
		{`func f() *int { return &n }`, "made.n has its address taken"},
		{`func f() *int { return &b.list[1] }`, "made.b has its address taken"},
		{`var x = &n`, "made.n has its address taken"},
		{`func f() { b.set() }`, "made.b has its address taken (by the method set)"},
		{`func f() { g := b.set; g() }`, "made.b has its address taken (by the method set)"},
		{`func f() []int { return array[:] }`, "made.array has its address taken (an array is sliced)"},
		{`func f() { delete(names, "a") }`, "made.names is changed by delete"},
		{`func f() { clear(table) }`, "made.table is changed by clear"},
		{`func f() { copy(array[:], table) }`, "made.array"},
		{`func f() { os.Args = nil }`, "os.Args is assigned"},
		{`var m sync.Mutex`, "made.m holds sync.Mutex"},
		{`var m = new(atomic.Int64)`, "made.m holds sync/atomic.Int64"},
		{`var m struct { p atomic.Pointer[box] }`, "made.m holds sync/atomic.Pointer"},
		{`var m held`, "made.m holds sync.Mutex"},
		{`var m = sync.OnceValue(someInt); var o sync.Once`, "made.o holds sync.Once"},
		{`var m = make(chan int)`, "made.m holds a channel"},
		{`var size = 64 << 10`, "made.size could be a constant"},
		{`var name string = "x"`, "made.name could be a constant"},
	} {
		fset := token.NewFileSet()
		files, p, info, err := parse(fset, "made", map[string][]byte{"made.go": []byte(head + c.body)}, export)
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		var got []string
		found := checkVars(fset, files, p, info)
		for _, name := range sortedKeys(found) {
			got = append(got, found[name]...)
		}
		if all := strings.Join(got, "\n"); c.want == "" && all != "" || !strings.Contains(all, c.want) {
			t.Errorf("%s\n\tcomplaints %q, want %q", c.body, got, c.want)
		}
	}
}
