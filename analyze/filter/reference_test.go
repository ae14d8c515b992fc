package filter

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// reference is the reference implementation: a filter as a tree of tests that
// collect all values first, compare them by slow means, and print themselves.
type reference struct {
	text string
	yes  func(r *record) bool
}

func drawRecord(t *rapid.T) *record {
	count := rapid.IntRange(0, 2)
	return &record{
		flag:  rapid.SliceOfN(rapid.Bool(), 0, 2).Draw(t, "flag"),
		ints:  rapid.SliceOfN(rapid.Int64Range(-3, 6), 0, 3).Draw(t, "ints"),
		spans: rapid.SliceOfN(rapid.Map(rapid.IntRange(-3, 6), func(n int) time.Duration { return time.Duration(n) * 500 * time.Microsecond }), 0, 2).Draw(t, "spans"),
		share: rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 4), func(n int) float64 { return float64(n) / 4 }), 0, 2).Draw(t, "share"),
		v4:    rapid.SliceOfN(rapid.Map(rapid.Uint32Range(0, 7), func(n uint32) model.Addr { return model.Addr4(10<<24 | n<<22) }), 0, 2).Draw(t, "v4"),
		addrs: rapid.SliceOfN(rapid.Map(rapid.Uint64Range(0, 7), func(n uint64) model.Addr {
			return model.Addr{Hi: 0x2001_0db8<<32 | n, Lo: n << 62}
		}), 0, count.Draw(t, "addrs")).Draw(t, "addrs"),
		texts: rapid.SliceOfN(rapid.SampledFrom([]string{"tor0", "leaf0", "a b", ""}), 0, 2).Draw(t, "texts"),
	}
}

// drawTest makes a test on one field: how it is written, and what it means by
// list, which gives all values, less and holds.
func drawTest[E any](t *rapid.T, name string, list func(*record) []E, lit func(*rapid.T) (string, E), less func(a, b E) bool, ordered bool) reference {
	kinds := []string{"is", "==", "!=", "in"}
	if ordered {
		kinds = append(kinds, "<", "<=", ">", ">=", "range")
	}
	kind := rapid.SampledFrom(kinds).Draw(t, "kind")
	text, x := lit(t)
	other, y := lit(t)
	equal := func(a, b E) bool { return !less(a, b) && !less(b, a) }
	some := func(test func(E) bool) func(*record) bool {
		return func(r *record) bool {
			n := 0
			for _, v := range list(r) {
				if test(v) {
					n++
				}
			}
			return n > 0
		}
	}
	switch kind {
	case "is":
		return reference{name, some(func(v E) bool { b, isBool := any(v).(bool); return !isBool || b })}
	case "==":
		return reference{name + " == " + text, some(func(v E) bool { return equal(v, x) })}
	case "!=":
		return reference{name + "!=" + text, func(r *record) bool {
			same := some(func(v E) bool { return equal(v, x) })
			return len(list(r)) > 0 && !same(r)
		}}
	case "in":
		return reference{name + " in {" + text + "," + other + "}", some(func(v E) bool { return equal(v, x) || equal(v, y) })}
	case "<":
		return reference{name + "<" + text, some(func(v E) bool { return less(v, x) })}
	case "<=":
		return reference{name + " le " + text, some(func(v E) bool { return !less(x, v) })}
	case ">":
		return reference{name + " > " + text, some(func(v E) bool { return less(x, v) })}
	case ">=":
		return reference{name + ">= " + text, some(func(v E) bool { return !less(v, x) })}
	}
	if less(y, x) {
		text, x, other, y = other, y, text, x
	}
	return reference{name + " in { " + text + ".." + other + " }", some(func(v E) bool { return !less(v, x) && !less(y, v) })}
}

func drawAddr(t *rapid.T, name string, list func(*record) []model.Addr, v6 bool) reference {
	less := func(a, b model.Addr) bool { return a.Netip().Less(b.Netip()) }
	if rapid.Bool().Draw(t, "prefix") {
		base, bits := "10.128.0.0", rapid.IntRange(0, 12)
		if v6 {
			base, bits = "2001:db8:0:4:c000::", rapid.IntRange(55, 68)
		}
		p := netip.PrefixFrom(netip.MustParseAddr(base), bits.Draw(t, "bits"))
		return reference{name + " == " + p.String(), func(r *record) bool {
			for _, a := range list(r) {
				if p.Contains(a.Netip()) {
					return true
				}
			}
			return false
		}}
	}
	return drawTest(t, name, list, func(t *rapid.T) (string, model.Addr) {
		n := rapid.Uint64Range(0, 7).Draw(t, "n")
		a := model.Addr4(10<<24 | uint32(n)<<22)
		if v6 {
			a = model.Addr{Hi: 0x2001_0db8<<32 | n, Lo: n << 62}
		}
		return a.String(), a
	}, less, true)
}

func drawFilter(t *rapid.T, depth int) reference {
	kind := rapid.IntRange(0, 9).Draw(t, "node")
	if depth == 0 {
		kind += 3
	}
	switch kind {
	case 0:
		a, b := drawFilter(t, depth-1), drawFilter(t, depth-1)
		return reference{"(" + a.text + rapid.SampledFrom([]string{"&&", " and "}).Draw(t, "and") + b.text + ")", func(r *record) bool { return a.yes(r) && b.yes(r) }}
	case 1:
		a, b := drawFilter(t, depth-1), drawFilter(t, depth-1)
		return reference{"(" + a.text + rapid.SampledFrom([]string{"||", " or "}).Draw(t, "or") + b.text + ")", func(r *record) bool { return a.yes(r) || b.yes(r) }}
	case 2:
		a := drawFilter(t, depth-1)
		return reference{rapid.SampledFrom([]string{"!", "not "}).Draw(t, "not") + "(" + a.text + ")", func(r *record) bool { return !a.yes(r) }}
	case 3, 10:
		return drawTest(t, "flag", func(r *record) []bool { return r.flag }, func(t *rapid.T) (string, bool) {
			b := rapid.Bool().Draw(t, "b")
			return fmt.Sprint(b), b
		}, func(a, b bool) bool { return !a && b }, false)
	case 4, 11:
		return drawTest(t, "int", func(r *record) []int64 { return r.ints }, func(t *rapid.T) (string, int64) {
			n := rapid.Int64Range(-3, 6).Draw(t, "n")
			return fmt.Sprintf(rapid.SampledFrom([]string{"%d", "%#x"}).Draw(t, "form"), n), n
		}, func(a, b int64) bool { return a < b }, true)
	case 5, 12:
		return drawTest(t, "time.span", func(r *record) []time.Duration { return r.spans }, func(t *rapid.T) (string, time.Duration) {
			d := time.Duration(rapid.IntRange(-3, 6).Draw(t, "n")) * 500 * time.Microsecond
			return d.String(), d
		}, func(a, b time.Duration) bool { return a < b }, true)
	case 6:
		return drawTest(t, "share", func(r *record) []float64 { return r.share }, func(t *rapid.T) (string, float64) {
			n := rapid.IntRange(0, 4).Draw(t, "n")
			return fmt.Sprint(25*n) + "%", float64(n) / 4
		}, func(a, b float64) bool { return a < b }, true)
	case 7:
		return drawAddr(t, "ip.src", func(r *record) []model.Addr { return r.v4 }, false)
	case 8:
		return drawAddr(t, "addr", func(r *record) []model.Addr { return r.addrs }, true)
	}
	return drawTest(t, "name", func(r *record) []string { return r.texts }, func(t *rapid.T) (string, string) {
		s := rapid.SampledFrom([]string{"tor0", "leaf0", "a b", ""}).Draw(t, "s")
		return fmt.Sprintf("%q", s), s
	}, func(a, b string) bool { return a < b }, false)
}

func TestMatchesTheReference(t *testing.T) {
	s := testSchema()
	rapid.Check(t, func(t *rapid.T) {
		want := drawFilter(t, 4)
		f, err := s.Parse(want.text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Parse(f.String())
		if err != nil || !reflect.DeepEqual(f.root, again.root) {
			t.Fatalf("%q prints as %q and comes back as %q, %v", want.text, f, again, err)
		}
		for range 4 {
			r := drawRecord(t)
			if got, want := f.Match(r), want.yes(r); got != want {
				t.Fatalf("%s is %v; want %v of %+v", f, got, want, r)
			}
		}
	})
}
