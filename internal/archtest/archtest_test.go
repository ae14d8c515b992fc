// Package archtest tests the architecture of Weft: which floor may import
// which, where third-party code may enter, and which packages may see the
// simulator's ground truth. docs/architecture.md draws the same rules.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/weft-telemetry/weft/"

// floor numbers the top-level folders from the bottom up. A package may import
// its own folder and folders of lower floors, nothing else of Weft. Tests may
// import from their own floor.
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
// and the folders that may import them. An analysis that could read them would
// know the answers.
var guarded = map[string][]string{
	// The ground truth of a simulated run: for scoring only.
	"sim/truth":    {"sim", "scenario", "repro", "bench"},
	"sim/lateness": {"sim", "scenario", "repro", "bench"},
	// A switch's actual forwarding tables, faults included. Analyzers have the
	// operator's intended routes, topo.Intent.
	"topo/fib": {"sim", "dataplane", "scenario", "repro", "bench"},
	// The reference of the flow analyses: for tests, and for its own parts.
	"analyze/slowslot": {"analyze/slowslot"},
	// A fabric that tests of services run.
	"scenario/realtime": {},
	// Demos and browsers that tests run.
	"scenario/live/livetest": {}, "internal/browsertest": {},
	// Servers that tests run.
	"store/clickhouse/chtest": {},
	// Another implementation of JSON Schema, that tests compare with.
	"internal/jsonschema/check": {},
}

// blind lists packages below folders that may import the truth, which must not: they
// judge with what an operator has.
var blind = []string{"scenario/proof"}

// thirdParty lists where third-party code enters below floor 3; from there on
// it is free. Programs that depend on a low floor then carry none of it.
var thirdParty = map[string][]string{
	"topo/file": {"github.com/goccy/go-yaml"},
	// Tests alone import it.
	"internal/jsonschema/check": {"github.com/goccy/go-yaml", "github.com/santhosh-tekuri/jsonschema/v5"},
	"internal/browsertest":      {"golang.org/x/sys"},
}

func TestImportsFollowTheFloors(t *testing.T) {
	// Reading the files here, not through "go list", lets the test cache see
	// them: an edited import reruns the test.
	for _, violation := range check(t, os.DirFS("../..")) {
		t.Error(violation)
	}
}

// TestProofsReadNoTruth: a result of a run has its truth as a field, which an import
// does not show.
func TestProofsReadNoTruth(t *testing.T) {
	for _, dir := range blind {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v; want some", dir, len(files), err)
		}
		for _, name := range files {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if i := strings.Index(string(src), ".Truth"); i >= 0 {
				t.Errorf("%s reads the truth of a run: line %d", name, 1+strings.Count(string(src[:i]), "\n"))
			}
		}
	}
}

// TestCheckFindsViolations breaks each rule.
func TestCheckFindsViolations(t *testing.T) {
	for name, tc := range map[string]struct{ file, imports, want string }{
		"upward":                  {"model/a.go", module + "wire/dta", "model (floor 0) imports wire (floor 1)"},
		"sideways":                {"analyze/flows/a.go", module + "sim", "analyze (floor 2) imports sim (floor 2)"},
		"unknown folder":          {"helpers/a.go", "fmt", `folder "helpers" has no floor`},
		"truth":                   {"control/a.go", module + "sim/truth", "sim/truth is guarded"},
		"exact accounts":          {"control/a.go", module + "sim/lateness", "sim/lateness is guarded"},
		"truth in a proof":        {"scenario/proof/a.go", module + "sim/truth", "sim/truth is guarded"},
		"actual routes":           {"analyze/trace/a.go", module + "topo/fib", "topo/fib is guarded"},
		"third party low":         {"wire/dta/a.go", "github.com/spf13/cobra", "third-party"},
		"third party nearby":      {"topo/a.go", "github.com/goccy/go-yaml", "third-party"},
		"internal imports others": {"internal/x/a.go", module + "model", "internal (floor -1) imports model (floor 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			src := "package p\nimport _ " + strconv.Quote(tc.imports) + "\n"
			got := check(t, fstest.MapFS{tc.file: {Data: []byte(src)}})
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("check(%s importing %s) = %q; want one violation with %q", tc.file, tc.imports, got, tc.want)
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

// check returns the violations below root.
func check(t *testing.T, root fs.FS) (violations []string) {
	t.Helper()
	violate := func(parts ...string) { violations = append(violations, strings.Join(parts, "")) }
	sources(t, root, func(name string, src []byte) {
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		from := folder(name)
		if _, known := floor[from]; !known {
			violate(name, ": folder ", strconv.Quote(from), " has no floor; add it to the map above")
			return
		}
		for _, spec := range file.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if rel, ours := strings.CutPrefix(imp, module); ours {
				checkOurs(name, from, rel, violate)
			} else if !standard(imp) && floor[from] < 3 && !mayUse(name, imp) {
				violate(name, ": third-party ", imp, " below floor 3; see thirdParty above")
			}
		}
	})
	return violations
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

func checkOurs(name, from, rel string, violate func(...string)) {
	if to := folder(rel); to != from && floor[to] >= floor[from] {
		violate(name, ": ", from, " (floor ", strconv.Itoa(floor[from]), ") imports ", to, " (floor ", strconv.Itoa(floor[to]), ")")
	}
	for pkg, folders := range guarded {
		sees := slices.Contains(folders, from) && !slices.Contains(blind, path.Dir(name))
		if within(rel, pkg) && !within(path.Dir(name), pkg) && !sees {
			violate(name, ": ", pkg, " is guarded; only ", strings.Join(folders, ", "), " may import it")
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

func folder(name string) string { r, _, _ := strings.Cut(name, "/"); return r }

// standard reports whether a path is of the standard library: only a module's
// first element has a dot.
func standard(imp string) bool { return !strings.Contains(folder(imp), ".") }
