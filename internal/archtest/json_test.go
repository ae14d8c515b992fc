package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// TestDurationsNameTheirUnit reads every JSON field of the project. A
// time.Duration is written as a bare number, so its name must have the unit.
func TestDurationsNameTheirUnit(t *testing.T) {
	for _, violation := range unitless(t, os.DirFS("../..")) {
		t.Error(violation)
	}
	for tag, want := range map[string]int{"mean": 1, "mean,omitempty": 1, "mean_ns": 0, "mean_ns,omitempty": 0, "-": 0} {
		src := "package p\nimport \"time\"\ntype T struct { Mean *time.Duration `json:\"" + tag + "\"` }\n"
		if got := unitless(t, fstest.MapFS{"model/a.go": {Data: []byte(src)}}); len(got) != want {
			t.Errorf("unitless(json:%q) = %q; want %d violations", tag, got, want)
		}
	}
}

// unitless returns the JSON fields below root that hold a time.Duration and do
// not name nanoseconds.
func unitless(t *testing.T, root fs.FS) (violations []string) {
	t.Helper()
	sources(t, root, func(name string, src []byte) {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || field.Tag == nil || !isDuration(field.Type) {
				return true
			}
			tag, _ := strconv.Unquote(field.Tag.Value)
			key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			if key != "" && key != "-" && !strings.HasSuffix(key, "_ns") {
				violations = append(violations, fmt.Sprintf("%v: JSON field %q is a duration without a unit, want %q", set.Position(field.Pos()), key, key+"_ns"))
			}
			return true
		})
	})
	return violations
}

func isDuration(t ast.Expr) bool {
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	sel, ok := t.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "time" && sel.Sel.Name == "Duration"
}
