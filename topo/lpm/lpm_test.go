package lpm

import (
	"net/netip"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func addr(s string) model.Addr { return model.AddrOf(netip.MustParseAddr(s)) }

func TestLookup(t *testing.T) {
	var table Table[string]
	for _, p := range []string{"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "::/0", "fd00::/8", "fd00::1/128"} {
		table.Set(netip.MustParsePrefix(p), p)
	}
	for in, want := range map[string]string{
		"10.1.2.3":  "10.1.2.3/32",
		"10.1.2.4":  "10.1.0.0/16",
		"10.2.2.4":  "10.0.0.0/8",
		"192.0.2.1": "0.0.0.0/0",
		"fd00::1":   "fd00::1/128",
		"fd01::1":   "fd00::/8",
		"2001::1":   "::/0",
	} {
		if got, _ := table.Lookup(addr(in)); got != want {
			t.Errorf("Lookup(%s) = %q; want %q", in, got, want)
		}
	}
}

func TestFamiliesAreSeparate(t *testing.T) {
	var table Table[int]
	table.Set(netip.MustParsePrefix("::/0"), 6)
	if v, ok := table.Lookup(addr("10.0.0.1")); ok {
		t.Errorf("Lookup(10.0.0.1) with only ::/0 = %d, true; want no match", v)
	}
}

// entry is one prefix of the reference implementation.
type entry struct {
	prefix netip.Prefix
	value  int
}

// slow is a list of prefixes, searched from end to end.
func slow(list []entry, a netip.Addr) (best entry, ok bool) {
	for _, e := range list {
		if e.prefix.Contains(a) && (!ok || e.prefix.Bits() > best.prefix.Bits()) {
			best, ok = e, true
		}
	}
	return best, ok
}

func TestTableEqualsReference(t *testing.T) {
	// Few distinct bits, so that prefixes nest and addresses fall into them.
	genAddr := rapid.Custom(func(t *rapid.T) netip.Addr {
		b := [4]byte{10, rapid.ByteRange(0, 3).Draw(t, "b"), rapid.ByteRange(0, 3).Draw(t, "c"), rapid.Byte().Draw(t, "d")}
		if rapid.Bool().Draw(t, "v6") {
			return netip.AddrFrom16([16]byte{0: 0xfd, 1: b[1], 7: b[2], 8: b[2], 15: b[3]})
		}
		return netip.AddrFrom4(b)
	})
	genPrefix := rapid.Custom(func(t *rapid.T) netip.Prefix {
		a := genAddr.Draw(t, "addr")
		p, _ := a.Prefix(rapid.IntRange(0, a.BitLen()).Draw(t, "bits"))
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		var table Table[int]
		var list []entry
		remove := func(p netip.Prefix) bool {
			for i := range list {
				if list[i].prefix == p {
					list = append(list[:i:i], list[i+1:]...)
					return true
				}
			}
			return false
		}
		for i := range rapid.IntRange(0, 30).Draw(t, "steps") {
			p := genPrefix.Draw(t, "prefix")
			if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				if got, want := table.Delete(p), remove(p); got != want {
					t.Fatalf("Delete(%v) = %v; want %v", p, got, want)
				}
				continue
			}
			remove(p)
			list = append(list, entry{p, i})
			table.Set(p, i)
			if got, ok := table.Get(p); got != i || !ok {
				t.Fatalf("Get(%v) after Set(%v, %d) = %d, %v; want %d, true", p, p, i, got, ok, i)
			}
		}
		if got, want := table.Empty(), len(list) == 0; got != want {
			t.Fatalf("Empty() with %d prefixes = %v; want %v", len(list), got, want)
		}
		for range 10 {
			a := genAddr.Draw(t, "address")
			want, wantOK := slow(list, a)
			if got, ok := table.Lookup(model.AddrOf(a)); got != want.value || ok != wantOK {
				t.Fatalf("Lookup(%v) = %d, %v; want %d, %v (%v)", a, got, ok, want.value, wantOK, want.prefix)
			}
		}
	})
}

func TestLookupAllocs(t *testing.T) {
	var table Table[int]
	table.Set(netip.MustParsePrefix("10.0.0.0/8"), 1)
	a := addr("10.1.1.1")
	if n := testing.AllocsPerRun(100, func() { table.Lookup(a) }); n != 0 {
		t.Errorf("Lookup allocates %v times; want 0", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	var table Table[int]
	for _, p := range []string{"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32"} {
		table.Set(netip.MustParsePrefix(p), 1)
	}
	a := addr("10.2.2.2")
	for b.Loop() {
		table.Lookup(a)
	}
}
