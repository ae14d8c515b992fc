// Leftover prints the tests that leave something to the run without the race
// detector, as an expression for go test -run: those that refer to internal/race,
// or to internal/browsertest, which does, through any declarations of their
// package's tests. The other tests of the packages would do a second time what
// they have done.
//
// Usage: leftover DIRECTORY…
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var tests []string
	for _, dir := range os.Args[1:] {
		list, err := leftover(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "leftover:", err)
			os.Exit(1)
		}
		tests = append(tests, list...)
	}
	slices.Sort(tests)
	fmt.Printf("^(%s)$\n", strings.Join(slices.Compact(tests), "|"))
}

// skipping are the packages by which a test leaves something out.
var skipping = []string{"race", "browsertest"}

// leftover returns the tests of a directory that leave something to the plain run.
func leftover(dir string) (tests []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	uses := map[string]map[string]bool{} // by declaration: the names in it
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			addDecl(uses, d)
		}
	}
	marked := map[string]bool{}
	for _, p := range skipping {
		marked[p] = true
	}
	for more := true; more; {
		more = false
		for name, used := range uses {
			if marked[name] {
				continue
			}
			for u := range used {
				if marked[u] {
					marked[name], more = true, true
					break
				}
			}
		}
	}
	for name := range uses {
		if marked[name] && strings.HasPrefix(name, "Test") {
			tests = append(tests, name)
		}
	}
	return tests, nil
}

// addDecl adds the names that a declaration uses. Methods are known by their names
// alone: those of two types with one name count as one, so a test may be found that
// leaves nothing, but none is missed.
func addDecl(uses map[string]map[string]bool, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		addNames(uses, d.Name.Name, d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					addNames(uses, n.Name, spec)
				}
			case *ast.TypeSpec:
				addNames(uses, spec.Name.Name, spec)
			}
		}
	}
}

// addNames adds all names within a node to those that a declaration uses.
func addNames(uses map[string]map[string]bool, decl string, node ast.Node) {
	if uses[decl] == nil {
		uses[decl] = map[string]bool{}
	}
	ast.Inspect(node, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name != decl {
			uses[decl][id.Name] = true
		}
		return true
	})
}
