package tree

import (
	"errors"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
)

func TestParseComplains(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		line int
		want string
	}{
		"empty":          {"", 1, "file is empty, want a topology"},
		"comment only":   {"# nothing\n", 1, "file is empty"},
		"two documents":  {"a: 1\n---\nb: 2\n", 3, "second document"},
		"syntax":         {"a: [1\n", 1, "want YAML or JSON"},
		"deep brackets":  {strings.Repeat("[", 40), 1, "more than 32 brackets"},
		"deep dashes":    {strings.Repeat(" ", 300) + "- a\n", 1, "item at column"},
		"a bare greater": {"a: > 0\n", 1, "needs quotes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.in), "a topology")
			var f *Fault
			if !errors.As(err, &f) || f.Line != tc.line || !strings.Contains(f.Msg, tc.want) {
				t.Errorf("Parse(%q) = %+v; want line %d, %q", tc.in, err, tc.line, tc.want)
			}
		})
	}
}

func TestLinesTextsAndKinds(t *testing.T) {
	body, err := Parse([]byte("a: 0x10\nb: {c: yes}\nd:\n  - \"q\"\n  - ~\n"), "a test")
	if err != nil {
		t.Fatal(err)
	}
	m := body.(ast.MapNode).MapRange()
	for _, want := range []struct {
		key, kind, text string
		line            int
	}{
		{"a", "a single value", "0x10", 1},
		{"b", "keys and values", "", 2},
		{"d", "a list", "", 4},
	} {
		if !m.Next() {
			t.Fatalf("no key %s", want.key)
		}
		if line := LineOf(m.Value()); line != want.line || Kind(m.Value()) != want.kind {
			t.Errorf("%s: %s on line %d; want %s on line %d", want.key, Kind(m.Value()), line, want.kind, want.line)
		}
		if text, err := Text(m.Value()); text != want.text || (err == nil) != (want.text != "") {
			t.Errorf("%s: Text = %q, %v; want %q", want.key, text, err, want.text)
		}
	}
}
