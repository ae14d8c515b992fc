package filter

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// record has a field of every type; slices have as many values as they like.
type record struct {
	flag   []bool
	ints   []int64
	share  []float64
	spans  []time.Duration
	bytes  []model.Bytes
	rates  []model.Rate
	v4, v6 []model.Addr
	addrs  []model.Addr
	macs   []model.MAC
	texts  []string
}

func several[E any](list func(*record) []E, of func(E) Value) func(*record, int) (Value, bool) {
	return func(r *record, i int) (Value, bool) {
		if l := list(r); i < len(l) {
			return of(l[i]), true
		}
		return Value{}, false
	}
}

var colours = map[string]int64{"red": 1, "green": 2, "sky blue": 3}

func address(s string) model.Addr { return model.AddrOf(netip.MustParseAddr(s)) }

func testSchema() *Schema[record] {
	v4 := func(r *record) []model.Addr { return r.v4 }
	return NewSchema([]Field[record]{
		{Name: "flag", Type: Bool, About: "a flag", Get: several(func(r *record) []bool { return r.flag }, BoolValue)},
		{Name: "int", Type: Int, Get: several(func(r *record) []int64 { return r.ints }, IntValue)},
		{Name: "colour", Type: Int, Names: colours, Get: several(func(r *record) []int64 { return r.ints }, IntValue)},
		{Name: "share", Type: Float, Get: several(func(r *record) []float64 { return r.share }, func(x float64) Value { return Value{Float: x} })},
		{Name: "time.span", Type: Duration, Get: several(func(r *record) []time.Duration { return r.spans }, IntValue)},
		{Name: "bytes", Type: Bytes, Get: several(func(r *record) []model.Bytes { return r.bytes }, IntValue)},
		{Name: "rate", Type: Rate, Get: several(func(r *record) []model.Rate { return r.rates }, IntValue)},
		{Name: "ip.src", Type: IPv4, About: "source", Get: several(v4, AddrValue)},
		{Name: "outer.ip.src", Type: IPv4, Get: several(func(r *record) []model.Addr { return r.v4[:min(len(r.v4), 1)] }, AddrValue)},
		{Name: "inner.ip.src", Type: IPv4, Get: several(func(r *record) []model.Addr { return r.v4[min(len(r.v4), 1):] }, AddrValue)},
		{Name: "ipv6.src", Type: IPv6, Get: several(func(r *record) []model.Addr { return r.v6 }, AddrValue)},
		{Name: "addr", Type: Addr, Get: several(func(r *record) []model.Addr { return r.addrs }, AddrValue)},
		{Name: "mac", Type: MAC, Get: several(func(r *record) []model.MAC { return r.macs }, MACValue)},
		{Name: "name", Type: Text, Get: several(func(r *record) []string { return r.texts }, TextValue)},
		{Name: "known", Type: Text, Names: map[string]int64{"tor0": 0, "leaf0": 0, "a b": 0}, Get: several(func(r *record) []string { return r.texts }, TextValue)},
	}, func(name string) (model.Addr, bool) { return address("10.0.0.7"), name == "h7" })
}

func sample() *record {
	return &record{
		flag: []bool{true}, ints: []int64{3, 7}, share: []float64{0.25}, spans: []time.Duration{1500 * time.Microsecond},
		bytes: []model.Bytes{100 * model.KB}, rates: []model.Rate{10 * model.Gbps},
		v4: []model.Addr{address("10.0.0.7"), address("192.0.2.1")}, v6: []model.Addr{address("2001:db8::1")},
		addrs: []model.Addr{address("10.0.0.7"), address("2001:db8::1")}, macs: []model.MAC{{2, 0, 0, 0, 0, 1}}, texts: []string{"tor0", "leaf0"},
	}
}

func TestMatch(t *testing.T) {
	s := testSchema()
	for text, want := range map[string]bool{
		"":                                   true,
		"flag":                               true,
		"!flag":                              false,
		"not flag || int == 3":               true,
		"flag == true and flag != false":     true,
		"int == 7":                           true,
		"int == 5":                           false,
		"int != 3":                           false, // one of them is
		"int != 5":                           true,
		"int < 4 && int > 6":                 true, // one of them each
		"int < 3 || int > 7":                 false,
		"int in {1, 5..8}":                   true,
		"int in {1,4..6,0x8}":                false,
		"colour == \"sky blue\"":             true,
		"colour in {red, green}":             false,
		"share >= 25% && share < 0.3":        true,
		"time.span > 1ms":                    true,
		"time.span in {1ms..1.4ms}":          false,
		"bytes == 100KB":                     true,
		"rate ge 10G and rate le 10Gb/s":     true,
		"ip.src == 10.0.0.0/8":               true,
		"ip.src != 10.0.0.0/8":               false,
		"ip.src == h7":                       true,
		"ip.src == 10.0.0.7,192.0.2.0/24":    true,
		"ip.src == 192.0.2.1,10.0.0.7":       false,
		"!(ip.src == 192.0.2.1 , 10.0.0.7)":  true,
		"ip.src in {10.0.0.1..10.0.0.6}":     false,
		"ip.src in {10.0.0.1..10.0.0.9}":     true,
		"ipv6.src == 2001:db8::/32":          true,
		"addr == 2001:db8::1 && addr < 10::": true,
		"mac == 02:00:00:00:00:01":           true,
		`name contains "or"`:                 true,
		"known contains eaf":                 true,
		"known == tor0":                      true,
		`known in {"a b"}`:                   false,
		"flag || flag && !flag":              true, // && binds stronger
		"(flag || flag) && !flag":            false,
	} {
		f, err := s.Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		if got := f.Match(sample()); got != want {
			t.Errorf("%q matches: %v; want %v", text, got, want)
		}
	}
}

// TestAbsent: what a record does not have is unequal to nothing.
func TestAbsent(t *testing.T) {
	s := testSchema()
	for _, text := range []string{"flag", "int", "int == 1", "int != 1", "int < 1", "name contains a", "addr in {10.0.0.0/8}"} {
		f, err := s.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if f.Match(&record{}) {
			t.Errorf("%q matches a record without values", text)
		}
		if not, err := s.Parse("!(" + text + ")"); err != nil || !not.Match(&record{}) {
			t.Errorf("!(%s) does not match a record without values, %v", text, err)
		}
	}
}

func TestErrorsPoint(t *testing.T) {
	s := testSchema()
	for text, want := range map[string]string{
		"ip.scr == 10.0.0.1":     "^^^^^^ unknown field \"ip.scr\", want ip.src",
		"int == ":                "       ^ the filter ends, want a number such as 5 or 0x1f",
		"int = 5":                "    ^ unexpected \"=\", want \"==\"",
		"int == red":             "       ^^^ \"red\" is not a value of int, want a number such as 5 or 0x1f",
		"colour == pink":         "          ^^^^ \"pink\" is not a value of colour, want a number, or one of green, red, sky blue",
		"known == tor1":          "         ^^^^ \"tor1\" is not a value of known, want one of a b, leaf0, tor0",
		"flag && (int == 5":      "                 ^ the filter ends, want && or || or )",
		"flag flag":              "     ^^^^ unexpected \"flag\", want && or || or the end",
		"flag < true":            "     ^ unexpected \"<\", want == or !=: flag has no order",
		"int contains 5":         "    ^^^^^^^^ unexpected \"contains\", want another operator: int is a number, and contains is for text",
		"int in {5..3}":          "        ^^^^ a range from 5 to 3, want single values, the smaller one first",
		"name in {a..b}":         "          ^^ unexpected \"..\", want , or }: name has no order",
		"int in 5":               "       ^ unexpected \"5\", want { and a list of values",
		"int in {}":              "        ^ unexpected \"}\", want a number such as 5 or 0x1f",
		"int in {5 6}":           "          ^ unexpected \"6\", want , or }",
		"ip.src == 2001:db8::1":  "          ^^^^^^^^^^^ \"2001:db8::1\" is not a value of ip.src, want an IPv4 address or a prefix, such as 10.0.0.0/8",
		"ip.src == h8":           "          ^^ no host h8, want an IPv4 address or a prefix, such as 10.0.0.0/8, or the name of a host",
		"ip.src < 10.0.0.0/8":    "         ^^^^^^^^^^ \"10.0.0.0/8\" is not a value of ip.src, want one address, not a prefix",
		"int == 5,6":             "        ^ unexpected \",\", want one value: int is not a field of both headers",
		"ip.src == h7,h7,h7":     "               ^ unexpected \",\", want two values, of the outer header and of the innermost",
		"name == \"tor":          "        ^^^^ unterminated quoted text or unknown escape, want a closing \"",
		"time.span > 5":          "            ^ \"5\" is not a value of time.span, want a duration such as 1.5ms",
		"share > NaN":            "        ^^^ \"NaN\" is not a value of share, want a number such as 0.5 or 50%",
		"µµ == 1":                "^^ unknown field \"µµ\", want a field of the schema, such as flag",
		"flag &&\n€ int":         "        ^ unexpected \"€\", want a field, a value, or an operator such as == or &&",
		"name contains or":       "              ^^ unexpected \"or\", want a word, or text in quotes",
		"&& flag":                "^^ unexpected \"&&\", want a field, ! or (",
		strings.Repeat("!", 101): strings.Repeat(" ", 100) + "^ unexpected \"!\", want at most 100 nested parentheses and negations",
		strings.Repeat("x", 99):  strings.Repeat("^", 99) + " unknown field \"" + strings.Repeat("x", 99) + "\", want a field of the schema, such as flag",
	} {
		_, err := s.Parse(text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("Parse(%q) = %v; want an *Error", text, err)
			continue
		}
		_, mark, _ := strings.Cut(e.Underline(), "\n")
		if got := mark + " " + e.Problem + ", want " + e.Want; got != want {
			t.Errorf("%s\n%s; want\n%s", text, got, want)
		}
		if !strings.HasPrefix(err.Error(), fmt.Sprintf("filter: column %d: ", strings.Index(mark, "^")+1)) {
			t.Errorf("%q says another column than its mark:\n%s", err, mark)
		}
	}
}

func TestString(t *testing.T) {
	s := testSchema()
	for text, want := range map[string]string{
		"":                                  "",
		"( flag )":                          "flag",
		"not(flag)":                         "!flag",
		"not not flag":                      "!!flag",
		"! int eq 0x10":                     "!(int == 16)",
		"flag and (flag and int lt 5)":      "flag && flag && int < 5",
		"(flag or flag) and flag or flag":   "(flag || flag) && flag || flag",
		"!(flag&&flag)":                     "!(flag && flag)",
		"colour==3":                         `colour == "sky blue"`,
		"share==50%":                        "share == 0.5",
		"time.span >= 90s":                  "time.span >= 1m30s",
		"bytes in {4096, 1500..9000}":       "bytes in {4KiB, 1.5KB..9KB}",
		"rate==25G":                         "rate == 25Gb/s",
		"ip.src == 10.1.2.3/8":              "ip.src == 10.0.0.0/8",
		"ip.src in {10.0.0.0..10.0.0.255}":  "ip.src in {10.0.0.0/24}",
		"ip.src in {10.0.0.1..10.0.0.2}":    "ip.src in {10.0.0.1..10.0.0.2}",
		"addr == ::/0":                      "addr == ::/0",
		"ip.src == 0.0.0.0/0":               "ip.src == 0.0.0.0/0",
		"ip.src == h7,10.0.0.0/8":           "outer.ip.src == 10.0.0.7 && inner.ip.src == 10.0.0.0/8",
		`name == "in" || name == "a\"b"`:    `name == "in" || name == "a\"b"`,
		`name == "plain" || name == "a..b"`: `name == plain || name == "a..b"`,
		"mac == 02-00-00-00-00-01":          "mac == 02:00:00:00:00:01",
	} {
		f, err := s.Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		if got := f.String(); got != want {
			t.Errorf("%q prints as %q; want %q", text, got, want)
		}
	}
}

func TestColumns(t *testing.T) {
	s := testSchema()
	c, err := s.Columns("int", "colour", "name", "rate", "flag")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Row(sample()), " "); got != "3,7 sky blue,7 tor0,leaf0 10Gb/s true" || len(c.Names()) != 5 {
		t.Errorf("row %q of %v", got, c.Names())
	}
	var e *Error
	if _, err := s.Columns("int", "colours"); !errors.As(err, &e) || e.Column() != 5 || e.Want != "colour" {
		t.Errorf("unknown column: %v", err)
	}
}

func TestComplete(t *testing.T) {
	s := testSchema()
	for text, want := range map[string]string{ // the cursor is |
		"|":                   "flag int colour share time.span bytes rate ip.src outer.ip.src inner.ip.src ipv6.src addr mac name known ! (",
		"ip|":                 "ip.src ipv6.src",
		"i|nt == 5":           "int ip.src inner.ip.src ipv6.src",
		"flag && !(na|":       "name",
		"flag |":              "== != in && ||",
		"name |":              "== != in contains && ||",
		"int |":               "== != < <= > >= in && ||",
		"name c|":             "contains",
		"int == |":            "",
		"colour == |":         `green red "sky blue"`,
		"colour in {red, gr|": "green",
		"flag == t|":          "true",
		"flag == true |":      "&& ||",
		"flag == true &|":     "", // a broken sign
		"nonsense && |":       "",
		`name == "in|`:        "",
		"known == tor0 || |n": "flag int colour share time.span bytes rate ip.src outer.ip.src inner.ip.src ipv6.src addr mac name known ! (",
	} {
		cursor := strings.Index(text, "|")
		if strings.HasSuffix(text, "|") {
			cursor = len(text) - 1
		} else if i := strings.LastIndex(text, "|"); strings.Count(text, "|") > 1 {
			cursor = i
		}
		c := s.Complete(text[:cursor]+text[cursor+1:], cursor)
		var got []string
		for _, one := range c.Candidates {
			got = append(got, one.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q completes to %q; want %q", text, got, want)
		}
	}
	if c := s.Complete("flag && inX", 10); c.From != 8 || c.To != 11 {
		t.Errorf("the word at the cursor spans %d to %d; want 8 to 11", c.From, c.To)
	}
}

func TestSchemaRefusesItsCallersMistakes(t *testing.T) {
	get := SingleValue(func(*record) Value { return Value{} })
	for name, fields := range map[string][]Field[record]{
		"none": {}, "keyword": {{Name: "in", Get: get}}, "space": {{Name: "a b", Get: get}}, "no name": {{Get: get}}, "no function": {{Name: "a"}},
		"twice": {{Name: "a", Get: get}, {Name: "a", Get: get}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no error", name)
				}
			}()
			NewSchema(fields, nil)
		}()
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	f, err := testSchema().Parse(`(ip.src == 10.0.0.0/8 && name contains "eaf" || rate > 40G) && int in {1, 5..9} && mac != 02:00:00:00:00:02 && !(share > 50%)`)
	if err != nil {
		t.Fatal(err)
	}
	r := sample()
	if !f.Match(r) {
		t.Fatal("no match")
	}
	if n := testing.AllocsPerRun(100, func() { f.Match(r) }); n != 0 {
		t.Errorf("Match allocates %v times; want never", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"ip.src == 10.0.0.0/8 && !(int in {1, 3..5} or flag)", `name contains "x\ny"`, "ip.src == h7,10.0.0.0/8", "time.span > 1.5µs", "share < 5%",
		"rate >= 10Gb/s", "bytes == 4KiB", "mac == 02:00:00:00:00:01", "addr in {::1..::5}", "((flag)", "int = 4", "!!!!",
	} {
		f.Add(text, 3)
	}
	s := testSchema()
	f.Fuzz(func(t *testing.T, text string, cursor int) {
		c := s.Complete(text, cursor)
		if c.From < 0 || c.To < c.From || c.To > len(text) {
			t.Fatalf("Complete(%q, %d) = %+v", text, cursor, c)
		}
		one, err := s.Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.At > e.End || e.End > len(text) || e.Underline() == "" || e.Problem == "" || e.Want == "" {
				t.Fatalf("Parse(%q) = %#v", text, err)
			}
			return
		}
		again, err := s.Parse(one.String())
		if err != nil || !reflect.DeepEqual(one.root, again.root) {
			t.Fatalf("%q prints as %q, which is %q, %v", text, one, again, err)
		}
		one.Match(sample())
	})
}

// TestEveryValueRoundTrips asks what extremes print as.
func TestEveryValueRoundTrips(t *testing.T) {
	s := testSchema()
	for i := range s.words.fields {
		f := &s.words.fields[i]
		for _, n := range []int64{0, 1, -1, 1500, 1 << 20, math.MaxInt64, math.MinInt64} {
			v := Value{Int: n, Float: float64(n) / 3, Addr: model.Addr4(uint32(n)), Text: "tor0"}
			switch f.typ {
			case Bool, MAC:
				v.Int &= 1
			case IPv6:
				v.Addr = model.Addr{Hi: uint64(n) | 1<<60}
			case Bytes, Rate:
				if n < 0 {
					continue // none is
				}
			}
			text := string(f.appendValue(nil, &v))
			got, err := s.words.parseLiteral(f, strings.Trim(text, `"`))
			if err != nil || f.typ.compare(&got.lo, &v) != 0 || !got.single(f.typ) {
				t.Errorf("%s of %+v prints as %q, which is %+v, %v", f.name, v, text, got, err)
			}
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	f, err := testSchema().Parse(`ip.src == 10.0.0.0/8 && int > 5 && name contains eaf`)
	if err != nil {
		b.Fatal(err)
	}
	r := sample()
	for b.Loop() {
		if !f.Match(r) {
			b.Fatal("no match")
		}
	}
}

func TestMust(t *testing.T) {
	s := testSchema()
	for text, want := range map[string]bool{
		"":                                  false,
		"int == 7":                          true,
		"ip.src == 10.0.0.1 && int == 7":    true,
		"(int == 7 && flag) && share > 0.5": true,
		"int == 7 || flag":                  false,
		"!(int == 7)":                       false,
		"int in {7, 8}":                     false,
		"int != 7":                          false,
		"int >= 7":                          false,
		"flag && (int == 7 || int == 8)":    false,
		"colour == 7":                       false, // another field, though of the same values
	} {
		f, err := s.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := f.RequiredValue("int"); ok != want || ok && v.Int != 7 {
			t.Errorf("Must(int) of %q = %v, %v; want 7: %v", text, v.Int, ok, want)
		}
	}
	f, err := s.Parse("ip.src == 10.0.0.0/24")
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := f.RequiredValue("ip.src"); ok {
		t.Errorf("Must(ip.src) of %v = %v; want none, for it is a range", f, v.Addr)
	}
}

// TestErrorsNameTheNearest: an unknown field or name is answered with those that are
// alike, and an unknown host is called one.
func TestErrorsNameTheNearest(t *testing.T) {
	hosts := map[string]int64{"h0": 0, "h9": 1}
	for i := range int64(8) {
		hosts["spare"+string('a'+rune(i))] = i
	}
	get := SingleValue(func(*record) Value { return Value{} })
	schema := NewSchema([]Field[record]{
		{Name: "ip.src", Type: IPv4, Get: get},
		{Name: "flow.lost", Type: Int, Get: get},
		{Name: "flow.paths", Type: Int, Get: get},
		{Name: "flow.src", Type: Text, Names: hosts, Get: get},
	}, func(string) (model.Addr, bool) { return model.Addr{}, false })
	for text, want := range map[string]string{
		"flow.los > 0":          `filter: column 1: unknown field "flow.los", want flow.lost`,
		"flow.path_changes > 0": `filter: column 1: unknown field "flow.path_changes", want flow.paths or flow.src or flow.lost`,
		"ip.src == h99":         `filter: column 11: no host h99, want an IPv4 address or a prefix, such as 10.0.0.0/8, or the name of a host`,
		"flow.src == h99":       `filter: column 13: "h99" is not a value of flow.src, want h9 or h0`,
		"ip.src == 10.0.0":      `filter: column 11: "10.0.0" is not a value of ip.src, want an IPv4 address or a prefix, such as 10.0.0.0/8`,
	} {
		if _, err := schema.Parse(text); err == nil || err.Error() != want {
			t.Errorf("Parse(%s): %v; want %s", text, err, want)
		}
	}
}
