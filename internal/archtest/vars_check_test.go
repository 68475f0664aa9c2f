package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// varChecker looks for package variables that can change. It knows the types
// of a package, so a local of the same name is no mistake; where types are
// missing (a package that does not compile, cgo) it keeps to what it knows.
//
// A variable can change if it is assigned, if its address is taken (also by a
// method with a pointer receiver, or by slicing an array), if something it
// refers to is changed through it, or if its type is made to be changed: a
// channel, or anything that holds a type of sync or sync/atomic. A variable
// that could be a constant is an invitation to assign it. Tables and prepared
// errors that nobody touches are fine.
type varChecker struct {
	fset  *token.FileSet
	pkg   *types.Package
	info  *types.Info
	found map[string][]string // complaints, by variable
}

// checkVars returns the complaints about the files of one package, by
// "path.variable".
func checkVars(fset *token.FileSet, files []*ast.File, p *types.Package, info *types.Info) map[string][]string {
	c := &varChecker{fset: fset, pkg: p, info: info, found: map[string][]string{}}
	for _, f := range files {
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, s := range g.Specs {
					c.declaration(s.(*ast.ValueSpec))
				}
			}
		}
		ast.Inspect(f, c.visit)
	}
	return c.found
}

func (c *varChecker) complain(v *types.Var, at token.Pos, what string) {
	name := v.Pkg().Path() + "." + v.Name()
	c.found[name] = append(c.found[name], fmt.Sprintf("%s: package variable %s %s", c.fset.Position(at), name, what))
}

// declaration judges the types and values of a package-level var line.
func (c *varChecker) declaration(s *ast.ValueSpec) {
	for i, name := range s.Names {
		v, ok := c.info.Defs[name].(*types.Var)
		if !ok || name.Name == "_" {
			continue
		}
		if why := changeable(v.Type(), nil); why != "" {
			c.complain(v, name.Pos(), "holds "+why)
		}
		if _, basic := v.Type().Underlying().(*types.Basic); basic && i < len(s.Values) && c.info.Types[s.Values[i]].Value != nil {
			c.complain(v, name.Pos(), "could be a constant")
		}
	}
}

// changeable names what makes a type one of shared, changing state.
func changeable(t types.Type, seen []types.Type) string {
	if slices.Contains(seen, t) {
		return ""
	}
	seen = append(seen, t)
	if n, ok := t.(*types.Named); ok && n.Obj().Pkg() != nil {
		if path := n.Obj().Pkg().Path(); path == "sync" || path == "sync/atomic" {
			return path + "." + n.Obj().Name()
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Chan:
		return "a channel"
	case *types.Pointer:
		return changeable(u.Elem(), seen)
	case *types.Array:
		return changeable(u.Elem(), seen)
	case *types.Slice:
		return changeable(u.Elem(), seen)
	case *types.Map:
		return changeable(u.Elem(), seen)
	case *types.Struct:
		for i := range u.NumFields() {
			if why := changeable(u.Field(i).Type(), seen); why != "" {
				return why
			}
		}
	}
	return ""
}

func (c *varChecker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, e := range n.Lhs {
				c.changes(e, "is assigned")
			}
		}
	case *ast.IncDecStmt:
		c.changes(n.X, "is assigned")
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			c.changes(n.Key, "is assigned")
			c.changes(n.Value, "is assigned")
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			c.changes(n.X, "has its address taken")
		}
	case *ast.SliceExpr:
		if t := c.info.TypeOf(n.X); t != nil {
			if _, array := t.Underlying().(*types.Array); array {
				c.changes(n.X, "has its address taken (an array is sliced)")
			}
		}
	case *ast.SendStmt:
		c.changes(n.Chan, "is sent to")
	case *ast.CallExpr:
		c.call(n)
	case *ast.SelectorExpr:
		c.method(n)
	}
	return true
}

// call notices the built-in functions that change their first argument.
func (c *varChecker) call(n *ast.CallExpr) {
	id, ok := ast.Unparen(n.Fun).(*ast.Ident)
	if !ok || len(n.Args) == 0 {
		return
	}
	if _, builtin := c.info.Uses[id].(*types.Builtin); builtin && slices.Contains([]string{"delete", "clear", "copy", "close"}, id.Name) {
		c.changes(n.Args[0], "is changed by "+id.Name)
	}
}

// method notices v.M where M has a pointer receiver and v is no pointer.
func (c *varChecker) method(n *ast.SelectorExpr) {
	s := c.info.Selections[n]
	if s == nil || s.Kind() != types.MethodVal {
		return
	}
	recv := s.Obj().(*types.Func).Signature().Recv()
	if _, pointer := recv.Type().(*types.Pointer); !pointer {
		return
	}
	if _, pointer := s.Recv().Underlying().(*types.Pointer); !pointer {
		c.changes(n.X, "has its address taken (by the method "+n.Sel.Name+")")
	}
}

// changes complains if e is a package variable, of this package or another,
// or something reached through one.
func (c *varChecker) changes(e ast.Expr, what string) {
	for at := e; e != nil; {
		switch x := e.(type) {
		case *ast.Ident:
			if v, ok := c.info.Uses[x].(*types.Var); ok && !v.IsField() && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
				c.complain(v, at.Pos(), what)
			}
			return
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok {
				if _, imported := c.info.Uses[id].(*types.PkgName); imported {
					e = x.Sel
					continue
				}
			}
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return
		}
	}
}
