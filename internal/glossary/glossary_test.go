package glossary

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weft-telemetry/weft/internal/race"
)

// passage is a text that a user or a library's user reads.
type passage struct {
	file string
	line int
	text string
}

// TestNoRejectedWord reads what users read. On failure it prints file, line,
// the word and what to write instead.
func TestNoRejectedWord(t *testing.T) {
	race.LeaveToPlainRun(t)
	names := readable(t)
	var (
		mu    sync.Mutex
		found []string
		used  = map[*exception]bool{}
		work  = make(chan string)
		wg    sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for name := range work {
				src, err := os.ReadFile("../../" + name)
				if err != nil {
					t.Error(err)
					continue
				}
				for _, p := range passages(t, name, src) {
					for _, m := range Find(p.text) {
						line := p.line + strings.Count(p.text[:m.At], "\n")
						mu.Lock()
						if e := excepted(p.file, m.Rule.Word); e != nil {
							used[e] = true
						} else {
							found = append(found, fmt.Sprintf("%s:%d: %q, use %s", p.file, line, m.Text, m.Rule.Use))
						}
						mu.Unlock()
					}
				}
			}
		}()
	}
	for _, name := range names {
		work <- name
	}
	close(work)
	wg.Wait()
	slices.Sort(found)
	for _, f := range found {
		t.Error(f)
	}
	for i := range exceptions {
		if e := &exceptions[i]; !used[e] {
			t.Errorf("the exception for %q in %s is not needed any more (%s)", e.word, e.file, e.reason)
		}
	}
}

// TestPageListsEveryRule holds the page and the rules together.
func TestPageListsEveryRule(t *testing.T) {
	page, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Rules {
		if !strings.Contains(string(page), "| "+r.Word+" |") {
			t.Errorf("docs/glossary.md has no row for %q", r.Word)
		}
	}
}

// TestRulesReject shows each rule a sentence that it must reject, and some that
// it must not.
func TestRulesReject(t *testing.T) {
	shown := map[string]bool{}
	for _, text := range []string{
		"the way of packets", "json:\"ways\"", "packets go round", "caught in a circle of 4 ports", "a host complained",
		"reporters are told", "the queue was let go", "which 4 flows overfill", "is held up by pauses", "2 flows stand still",
		"a moment ago", "which was lost lately", "3 packets underway", "5 in the mean", "so many ports", "nobody is named",
		"counters of one's own", "the switch's processor", "beside its twin", "had no room for 229 packets", "of 12 nothing was heard",
		"42 flows reach leaf1 and no further", "leaf1 is to blame", "packets vanish", "there and back", "packets on purpose",
		"all switches hash alike", "a network card", "takes packets in slowly", "left out: now", "fitful pauses", "a wave of packets",
		"what became of it", "before what there is is judged", "it hurts 64 flows", "plays a scenario", "forwards otherwise than intended",
	} {
		found := Find(text)
		if len(found) == 0 {
			t.Errorf("no rule rejects %q", text)
		}
		for _, m := range found {
			shown[m.Rule.Word] = true
		}
	}
	for _, text := range []string{
		"a two-way link", "always", "gateway", "circled", "as long as it runs", "a k-way merge", "replayed", "display", "waveform",
	} {
		if m := Find(text); len(m) > 0 {
			t.Errorf("%q is rejected for %q", text, m[0].Text)
		}
	}
	for i := range Rules {
		if Rules[i].Use == "" {
			t.Errorf("%q has no better word", Rules[i].Word)
		}
		if !shown[Rules[i].Word] {
			t.Errorf("no sentence above shows the rule %q", Rules[i].Word)
		}
	}
}

// TestPassages holds what of a Go file is read: strings, comments and JSON keys;
// not imports or identifiers.
func TestPassages(t *testing.T) {
	const src = `// Package p says p.
package p

import "way/imported"

// Exported says e.
type Exported struct {
	// Field says f.
	Field int ` + "`json:\"key\" doc:\"says t\"`" + ` // says g
}

// hidden says h.
func hidden() string { return "says s" }
`
	var got []string
	for _, p := range passages(t, "p/p.go", []byte(src)) {
		got = append(got, strings.TrimSpace(p.text))
	}
	want := []string{"Package p says p.", "Exported says e.", "Field says f.", "says g", "key", "says t", "hidden says h.", "says s"}
	slices.Sort(got)
	slices.Sort(want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("passages: %q, want %q", got, want)
	}
}

// readable lists the files that hold text for users.
func readable(t *testing.T) (names []string) {
	t.Helper()
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case "node_modules", "dist", "bin", ".git":
				return fs.SkipDir
			case "testdata":
				if name != "cmd/weft/testdata" {
					return fs.SkipDir
				}
			}
			return nil
		}
		switch path.Ext(name) {
		case ".go":
			if strings.HasSuffix(name, "_test.go") {
				return nil
			}
		case ".json":
			if !strings.HasPrefix(name, "deploy/") {
				return nil
			}
		case "":
			if d.Name() != "Makefile" {
				return nil
			}
		case ".md", ".svelte", ".ts", ".lua", ".yaml", ".yml", ".txtar", ".txt", ".service", ".css", ".html":
		default:
			return nil
		}
		if path.Base(name) == "schema.d.ts" { // generated from the API's own texts, which are read there
			return nil
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func passages(t *testing.T, name string, src []byte) []passage {
	t.Helper()
	if path.Ext(name) != ".go" {
		return []passage{{name, 1, string(src)}}
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	var list []passage
	text := func(at token.Pos, s string) {
		list = append(list, passage{name, fset.Position(at).Line, s})
	}
	for _, g := range file.Comments {
		text(g.Pos(), g.Text())
	}
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				tags[n.Tag] = true
				tag, _ := strconv.Unquote(n.Tag.Value)
				for _, key := range []string{"json", "yaml", "doc", "enum", "example", "query", "path", "header"} {
					if v, ok := reflect.StructTag(tag).Lookup(key); ok {
						text(n.Tag.Pos(), strings.NewReplacer(",omitempty", "", ",omitzero", "", "_", " ").Replace(v))
					}
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && !tags[n] {
				if s, err := strconv.Unquote(n.Value); err == nil {
					text(n.Pos(), s)
				}
			}
		}
		return true
	})
	return list
}
