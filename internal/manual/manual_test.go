// Package manual checks docs and READMEs against the tree: links, anchors,
// files, packages and tests that they name must exist. cmd/weft tests commands
// and flags.
package manual

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var root = os.DirFS("../..")

// files lists the tree's files with a suffix.
func files(t *testing.T, ending string) (list []string) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || name != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(name, ending) {
			list = append(list, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := fs.ReadFile(root, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func exists(name string) bool { _, err := fs.Stat(root, path.Clean(name)); return err == nil }

// anchors returns the anchors of a page's headings, as forges make them.
func anchors(text string) (list []string) {
	for line := range strings.Lines(outsideBlocks(text)) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			list = append(list, strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(title)))
		}
	}
	return list
}

// outsideBlocks returns a page without its code blocks.
func outsideBlocks(text string) string {
	var b strings.Builder
	for i, part := range strings.Split("\n"+text, "\n```") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}

// leads reports whether a link from a file resolves.
func leads(t *testing.T, from, link string) bool {
	to, anchor, _ := strings.Cut(link, "#")
	page := path.Join(path.Dir(from), to)
	if to == "" {
		page = from
	}
	if !exists(page) {
		return false
	}
	return anchor == "" || slices.Contains(anchors(read(t, page)), anchor)
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksLead(t *testing.T) {
	n := 0
	for _, page := range files(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(outsideBlocks(read(t, page)), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if n++; !leads(t, page, m[1]) {
				t.Errorf("%s: link to %s leads nowhere", page, m[1])
			}
		}
	}
	if n < 50 {
		t.Errorf("%d links seen; want those of all pages", n)
	}
}

var manualOf = regexp.MustCompile(`docs/[\w/-]+\.md(#[\w-]+)?`)

func TestCommentsNamePages(t *testing.T) {
	n := 0
	for _, file := range files(t, ".go") {
		if strings.HasPrefix(file, "internal/manual/") {
			continue
		}
		for _, name := range manualOf.FindAllString(read(t, file), -1) {
			if n++; !leads(t, ".", name) {
				t.Errorf("%s: there is no %s", file, name)
			}
		}
	}
	if n < 50 {
		t.Errorf("%d pages named; want those of all packages", n)
	}
}

var (
	span   = regexp.MustCompile("`([^`\n]+)`")
	inTree = regexp.MustCompile(`^(analyze|bench|cmd|collect|console|control|dataplane|deploy|docs|examples|ingest|inhost|inswitch|internal|model|repro|scenario|scripts|sim|sketch|store|stream|topo|wire)/[\w./-]+$`)
	ofTest = regexp.MustCompile(`^(.+/)?((?:Test|Fuzz|Benchmark)[A-Z]\w*)(?:/\w+)?$`)
)

// TestNamesAreThere checks files, packages and tests that pages name in
// backquotes.
func TestNamesAreThere(t *testing.T) {
	tests := map[string]string{} // the code of each package's tests
	var all strings.Builder
	for _, file := range files(t, "_test.go") {
		tests[path.Dir(file)] += read(t, file)
		all.WriteString(read(t, file))
	}
	n := 0
	for _, page := range files(t, ".md") {
		for _, m := range span.FindAllStringSubmatch(outsideBlocks(read(t, page)), -1) {
			switch name := m[1]; {
			case ofTest.MatchString(name):
				// A test may be preceded by its package and followed by a subtest:
				// topo/TestRoutes/ring.
				test := ofTest.FindStringSubmatch(name)
				in := all.String()
				if test[1] != "" {
					in = tests[strings.TrimSuffix(test[1], "/")]
				}
				if n++; !strings.Contains(in, "func "+test[2]+"(") {
					t.Errorf("%s: there is no %s", page, name)
				}
			case inTree.MatchString(name):
				// A package may be followed by one of its names: model.Time.
				dir, last := path.Split(name)
				word, _, _ := strings.Cut(last, ".")
				if n++; !exists(name) && !exists(dir+word) {
					t.Errorf("%s: there is no %s", page, name)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("%d names seen; want those of all pages", n)
	}
}
