// Package archtest holds the shape of Weft: which room may import which, where
// third-party code may enter, and who may see what only a simulator knows.
// docs/architecture.md draws the same rules for people.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/weft-telemetry/weft/"

// floor numbers the rooms from the ground up. A package may import its own
// room and rooms on lower floors, nothing else of ours. Tests may look
// sideways.
var floor = map[string]int{
	"internal": -1, "examples": -1,
	"model": 0,
	"wire":  1, "sketch": 1, "topo": 1,
	"inswitch": 2, "inhost": 2, "sim": 2, "collect": 2, "analyze": 2,
	"dataplane": 3, "ingest": 3, "store": 3, "stream": 3,
	"control": 4,
	"console": 5, "scenario": 5,
	"bench": 6, "repro": 6,
	"cmd": 7, // weft bench and weft repro run those two
}

// guarded lists packages that hold what no observer of a real fabric can know,
// and the rooms that may import them. An analysis that could read them would
// be grading its own paper.
var guarded = map[string][]string{
	// What really happened in a simulated run: for scoring only.
	"sim/truth": {"sim", "scenario", "repro", "bench"},
	// What a switch's tables really say, faults included. Analyzers have the
	// operator's intended routes, topo.Intent.
	"topo/fib": {"sim", "dataplane", "scenario", "repro", "bench"},
}

// thirdParty lists where code from elsewhere enters below floor 3; there and
// above it is free. Programs that depend on a low room then carry none of it.
var thirdParty = map[string][]string{
	"topo/file": {"github.com/goccy/go-yaml"},
}

func TestImportsFollowTheFloors(t *testing.T) {
	// Reading the files here, not through "go list", lets the test cache see
	// them: an edited import reruns the test.
	for _, complaint := range check(t, os.DirFS("../..")) {
		t.Error(complaint)
	}
}

// TestCheckComplains breaks each rule on purpose.
func TestCheckComplains(t *testing.T) {
	for name, tc := range map[string]struct{ file, imports, want string }{
		"upward":             {"model/a.go", module + "wire/dta", "model (floor 0) imports wire (floor 1)"},
		"sideways":           {"analyze/flows/a.go", module + "sim", "analyze (floor 2) imports sim (floor 2)"},
		"unknown room":       {"helpers/a.go", "fmt", `room "helpers" has no floor`},
		"truth":              {"control/a.go", module + "sim/truth", "sim/truth is guarded"},
		"actual routes":      {"analyze/trace/a.go", module + "topo/fib", "topo/fib is guarded"},
		"third party low":    {"wire/dta/a.go", "github.com/spf13/cobra", "third-party"},
		"third party nearby": {"topo/a.go", "github.com/goccy/go-yaml", "third-party"},
		"internal looks out": {"internal/x/a.go", module + "model", "internal (floor -1) imports model (floor 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			src := "package p\nimport _ " + strconv.Quote(tc.imports) + "\n"
			got := check(t, fstest.MapFS{tc.file: {Data: []byte(src)}})
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("check(%s importing %s) = %q; want one complaint with %q", tc.file, tc.imports, got, tc.want)
			}
		})
	}
	legal := fstest.MapFS{
		"topo/file/a.go": {Data: []byte("package p\nimport _ \"github.com/goccy/go-yaml/ast\"\nimport _ \"" + module + "topo\"\n")},
		"repro/a.go":     {Data: []byte("package p\nimport _ \"" + module + "sim/truth\"\n")},
		"wire/a_test.go": {Data: []byte("package p\nimport _ \"github.com/google/go-cmp/cmp\"\n")},
	}
	if got := check(t, legal); len(got) != 0 {
		t.Errorf("check(legal) = %q; want none", got)
	}
}

// check returns what breaks a rule below root.
func check(t *testing.T, root fs.FS) (complaints []string) {
	t.Helper()
	complain := func(parts ...string) { complaints = append(complaints, strings.Join(parts, "")) }
	sources(t, root, func(name string, src []byte) {
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		from := room(name)
		if _, known := floor[from]; !known {
			complain(name, ": room ", strconv.Quote(from), " has no floor; add it to the map above")
			return
		}
		for _, spec := range file.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if rel, ours := strings.CutPrefix(imp, module); ours {
				checkOurs(name, from, rel, complain)
			} else if !standard(imp) && floor[from] < 3 && !mayUse(name, imp) {
				complain(name, ": third-party ", imp, " below floor 3; see thirdParty above")
			}
		}
	})
	return complaints
}

// sources reads every non-test Go file below root.
func sources(t *testing.T, root fs.FS, read func(name string, src []byte)) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != ".") {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err == nil {
			read(name, src)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkOurs(name, from, rel string, complain func(...string)) {
	if to := room(rel); to != from && floor[to] >= floor[from] {
		complain(name, ": ", from, " (floor ", strconv.Itoa(floor[from]), ") imports ", to, " (floor ", strconv.Itoa(floor[to]), ")")
	}
	for pkg, rooms := range guarded {
		if within(rel, pkg) && !within(path.Dir(name), pkg) && !slices.Contains(rooms, from) {
			complain(name, ": ", pkg, " is guarded; only ", strings.Join(rooms, ", "), " may import it")
		}
	}
}

func mayUse(name, imp string) bool {
	for pkg, mods := range thirdParty {
		if within(path.Dir(name), pkg) && slices.ContainsFunc(mods, func(m string) bool { return within(imp, m) }) {
			return true
		}
	}
	return false
}

// within reports whether path p is dir or lies below it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func room(name string) string { r, _, _ := strings.Cut(name, "/"); return r }

// standard tells the standard library from modules: only a module's first
// element has a dot.
func standard(imp string) bool { return !strings.Contains(room(imp), ".") }
