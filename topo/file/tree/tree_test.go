package tree

import (
	"strings"
	"testing"
)

func TestParseErrors(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"empty":          {"", "f:1: file is empty, want a topology"},
		"comment only":   {"# nothing\n", "f:1: file is empty"},
		"two documents":  {"a: 1\n---\nb: 2\n", "f:3: second document"},
		"one key twice":  {"a: 1\n\"a\": 2\n", `f:2: mapping key "a" already defined`},
		"syntax":         {"a: [1\n", "f:1: sequence end token ']' not found, want YAML or JSON"},
		"deep brackets":  {strings.Repeat("[", 40), "f:1: more than 32 nested brackets"},
		"deep dashes":    {strings.Repeat(" ", 300) + "- a\n", "f:1: item at column"},
		"a bare greater": {"a: > 0\n", "needs quotes"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("f", []byte(tc.in), "a topology"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse(%q) = %v; want %q", tc.in, err, tc.want)
			}
		})
	}
}

func TestValues(t *testing.T) {
	root := parse(t, "a: 0x10\nb: {c: yes}\nd:\n  - \"q\"\n  - ~\ne:\n")
	list, err := root.Entries("the file")
	if err != nil || len(list) != 4 {
		t.Fatalf("Entries = %v, %v; want four", list, err)
	}
	for i, want := range []struct {
		key, text         string
		keyLine, line     int
		is                string
		listErr, entryErr string
	}{
		{"a", "0x10", 1, 1, "text", "f:1: a is a single value, want a list", "f:1: a is a single value, want keys and values"},
		{"b", "", 2, 2, "map", "f:2: b is keys and values, want a list", ""},
		{"d", "", 3, 4, "list", "", "f:4: d is a list, want keys and values"},
		{"e", "", 6, 6, "empty", "f:6: e is empty, want a list", "f:6: e is empty, want keys and values"},
	} {
		e := list[i]
		if e.Key != want.key || e.Line != want.line || e.KeyPosition().Line != want.keyLine {
			t.Errorf("entry %d is %s on line %d, its key on %d; want %s on %d, on %d", i, e.Key, e.Line, e.KeyPosition().Line, want.key, want.line, want.keyLine)
		}
		for name, is := range map[string]bool{"text": e.IsText(), "map": e.IsMap(), "list": e.IsList(), "empty": e.IsEmpty()} {
			if is != (name == want.is) {
				t.Errorf("%s: is %s: %v; want it to be %s", e.Key, name, is, want.is)
			}
		}
		if text, err := e.Text("it"); text != want.text || (err == nil) != (want.text != "") {
			t.Errorf("%s: Text = %q, %v; want %q", e.Key, text, err, want.text)
		}
		_, err := e.List(e.Key)
		checkError(t, err, want.listErr)
		_, err = e.Value.Entries(e.Key)
		checkError(t, err, want.entryErr)
	}
}

func TestFields(t *testing.T) {
	root := parse(t, "a: 1\nb: 2\n")
	fields, err := root.Fields("the file", "a", "b", "c")
	if err != nil || len(fields) != 2 {
		t.Errorf("Fields = %v, %v; want a and b", fields, err)
	}
	_, err = root.Fields("the file", "a", "c")
	checkError(t, err, `f:2: unknown key "b" in the file, want one of a, c`)
}

// TestByteOrderMark: the mark is not part of the first key.
func TestByteOrderMark(t *testing.T) {
	root, err := Parse("f", []byte("\ufeffa: 1\n"), "a test")
	if err != nil {
		t.Fatal(err)
	}
	list, err := root.Entries("it")
	if err != nil || len(list) != 1 || list[0].Key != "a" {
		t.Errorf("entries %+v, %v; want a", list, err)
	}
}

func TestColonText(t *testing.T) {
	list, err := parse(t, "[a:b, {a: b}, \"a:b\", a]").List("the file")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a:b", "a:b", "a:b", "a"} {
		if got, err := list[i].ColonText("an end", "node:port"); got != want || err != nil {
			t.Errorf("item %d: ColonText = %q, %v; want %q", i, got, err, want)
		}
	}
	_, err = parse(t, "{a: b, c: d}").ColonText("an end", "node:port")
	checkError(t, err, "f:1: an end is keys and values, want node:port")
}

func TestAliases(t *testing.T) {
	const doc = "a: &a {x: 1, y: 2}\nb: *a\nc:\n  <<: *a\n  y: 3\n"
	if _, err := entry(t, parse(t, doc), "b").Entries("b"); err == nil {
		t.Error("an alias was followed without being asked to")
	}
	root := parse(t, doc).FollowAliases()
	for key, want := range map[string]string{"b": "x1y2", "c": "x1y3"} {
		list, err := entry(t, root, key).Entries(key)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, e := range list {
			text, _ := e.Text(e.Key)
			got += e.Key + text
		}
		if got != want {
			t.Errorf("%s holds %s; want %s: a mapping's own keys win", key, got, want)
		}
	}
}

func TestAlone(t *testing.T) {
	for in, want := range map[string]string{
		"a: 1\nb:\n  c: 2\nd: 3\n": "\n\n  c: 2\n\n",
		"{a: 1, b: {c: 2}, d: 3}":  "          {c: 2}       ",
	} {
		list, err := parse(t, in).Entries("the file")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(list[1].Excerpt([]byte(in), list[2].KeyPosition().Line)); strings.TrimRight(got, " \n") != strings.TrimRight(want, " \n") {
			t.Errorf("Alone(%q) = %q; want %q", in, got, want)
		}
	}
}

func parse(t *testing.T, in string) Value {
	t.Helper()
	v, err := Parse("f", []byte(in), "a test")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func entry(t *testing.T, v Value, key string) Value {
	t.Helper()
	list, err := v.Entries("the file")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Key == key {
			return e.Value
		}
	}
	t.Fatalf("no key %s", key)
	return Value{}
}

// checkError compares an error's text; "" wants none.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if got := ""; err != nil {
		if got = err.Error(); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	} else if want != "" {
		t.Errorf("no error; want %q", want)
	}
}
