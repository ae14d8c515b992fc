package poll

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func key(t testing.TB, s string) model.FlowKey {
	t.Helper()
	k, err := model.ParseFlowKey(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const (
	roce4 = "udp 10.0.0.2:49152 > 10.0.1.3:4791"
	roce6 = "udp [2001:db8::1]:49152 > [2001:db8::2]:4791"

	// As the prototype's agent first sends it.
	agent = "40 ff80 ff80 2a 0a000002 0a000103 11 c000 12b7"
	weft4 = "c1 1f 0003 0201 0d00 00000011 01020304 0000000000bc614e 0a000002 0a000103 c000 12b7 11"
	weft6 = "81 00 0000 0000 2500 00000011 00000001 ffffffffffffffff" +
		"20010db8000000000000000000000001 20010db8000000000000000000000002 c000 12b7 11"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want Poll
		n    int
		err  error
	}{
		"prototype from the agent": {
			in: agent, n: 19,
			want: Poll{
				Flag: Victim, InPort: PrototypeNoPort, OutPort: PrototypeNoPort,
				Event: Event{Number: 42}, Flow: key(t, roce4),
			},
		},
		"prototype between switches": {
			in: "80 0080 8000 ff 0a000002 0a000103 11 c000 12b7 0000", n: 19,
			want: Poll{Flag: Causes, InPort: 1, OutPort: 256, Event: Event{Number: 255}, Flow: key(t, roce4)},
		},
		"weft, IPv4": {
			in: weft4, n: 37,
			want: Poll{
				Layout: Weft, Flag: Both, HopLimit: 31, InPort: 3, OutPort: 513,
				Event: Event{Host: 17, Number: 0x01020304}, Origin: 12345678, Flow: key(t, roce4),
			},
		},
		"weft, IPv6, padded": {
			in: weft6 + "0000", n: 61,
			want: Poll{
				Layout: Weft, Flag: Causes,
				Event: Event{Host: 17, Number: 1}, Origin: -1, Flow: key(t, roce6),
			},
		},
		"empty":                   {in: "", err: ErrShort},
		"prototype cut":           {in: agent[:len(agent)-2], err: ErrShort},
		"prototype ingress pad":   {in: "40 ff81 ff80 2a 0a000002 0a000103 11 c000 12b7", err: ErrReserved},
		"prototype egress pad":    {in: "40 ff80 ffc0 2a 0a000002 0a000103 11 c000 12b7", err: ErrReserved},
		"version 2":               {in: "c2" + weft4[2:], err: ErrVersion},
		"weft head cut":           {in: "c1 1f 0003 0201 0d00 00000011", err: ErrShort},
		"weft key cut":            {in: weft4[:len(weft4)-2], err: ErrShort},
		"weft returning, late":    {in: strings.Replace(weft4, "0d00", "0d81", 1), err: ErrReserved},
		"weft key of 14":          {in: strings.Replace(weft4, "0d00", "0e00", 1) + "00", err: ErrKey},
		"weft IPv4 said to be v6": {in: strings.Replace(weft4, "0d00", "2500", 1), err: ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			got := Poll{HopLimit: 9, Origin: 9, Flow: model.FlowKey{V6: true}} // must be overwritten
			n, err := got.Parse(unhex(t, tc.in))
			if err != tc.err || n != tc.n || got != tc.want {
				t.Errorf("Parse(%s) = %d, %+v, %v; want %d, %+v, %v", tc.in, n, got, err, tc.n, tc.want, tc.err)
			}
		})
	}
}

func TestAppendTo(t *testing.T) {
	for name, tc := range map[string]struct {
		poll Poll
		want string
	}{
		"weft": {
			Poll{
				Layout: Weft, Flag: Both, HopLimit: 31, InPort: 3, OutPort: 513,
				Event: Event{Host: 17, Number: 0x01020304}, Origin: 12345678, Flow: key(t, roce4),
			}, weft4,
		},
		"prototype cuts what is too wide": {
			Poll{
				Flag: Victim | 4, HopLimit: 31, InPort: 0xfdff, OutPort: PrototypeNoPort,
				Event: Event{Host: 17, Number: 0x12a}, Origin: 1, Flow: key(t, roce4),
			}, agent,
		},
		"unknown layout is ours": {
			Poll{
				Layout: 9, Flag: Both, HopLimit: 31, InPort: 3, OutPort: 513,
				Event: Event{Host: 17, Number: 0x01020304}, Origin: 12345678, Flow: key(t, roce4),
			}, weft4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := tc.poll.AppendTo(nil), unhex(t, tc.want); !bytes.Equal(got, want) {
				t.Errorf("%+v.AppendTo = %x; want %x", tc.poll, got, want)
			}
		})
	}
}

func TestWeftCarriesEveryValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flow := make([]byte, rapid.SampledFrom([]int{model.KeyLen4, model.KeyLen6}).Draw(t, "key length"))
		for i := range flow {
			flow[i] = rapid.Byte().Draw(t, "key byte")
		}
		want := Poll{
			Layout:   Weft,
			Flag:     Flag(rapid.IntRange(0, 3).Draw(t, "flag")),
			HopLimit: rapid.Uint8().Draw(t, "hop limit"),
			InPort:   model.PortID(rapid.Uint16().Draw(t, "in")),
			OutPort:  model.PortID(rapid.Uint16().Draw(t, "out")),
			Event: Event{
				Host:   model.NodeID(rapid.Uint32().Draw(t, "host")),
				Number: rapid.Uint32().Draw(t, "number"),
			},
			Origin:    model.Time(rapid.Int64().Draw(t, "origin")),
			Returning: rapid.Bool().Draw(t, "returning"),
		}
		if !want.Returning {
			want.Unexplained = Lateness(rapid.IntRange(0, int(MaxLateness)).Draw(t, "unexplained"))
		}
		if err := want.Flow.Parse(flow); err != nil {
			t.Fatal(err)
		}
		var got Poll
		wire := want.AppendTo(nil)
		if n, err := got.Parse(wire); n != len(wire) || err != nil || got != want {
			t.Fatalf("Parse(%x) = %d, %+v, %v; want %d, %+v, nil", wire, n, got, err, len(wire), want)
		}
	})
}

func TestLateness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Lateness(rapid.IntRange(0, int(MaxLateness)).Draw(t, "code"))
		if got := LatenessOf(l.Duration()); got != l {
			t.Fatalf("LatenessOf(%v) = %d; want %d", l.Duration(), got, l)
		}
		d := time.Duration(rapid.Int64Range(-5, int64(7*time.Second)).Draw(t, "time"))
		if got := LatenessOf(d).Duration(); got > max(d, 0) || 5*got < 4*d {
			t.Fatalf("LatenessOf(%v) is %v; want it rounded down by less than a fifth", d, got)
		}
	})
	if got := LatenessOf(time.Hour); got != MaxLateness {
		t.Errorf("LatenessOf(1 h) = %d; want the longest", got)
	}
}

func TestStrings(t *testing.T) {
	for want, got := range map[string]string{
		"none": Flag(0).String(), "victim": Victim.String(), "causes": Causes.String(), "both": Both.String(),
		"17#3": Event{Host: 17, Number: 3}.String(),
	} {
		if got != want {
			t.Errorf("String = %q; want %q", got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Poll{Flag: Victim, InPort: PrototypeNoPort, Flow: key(f, roce4)}.AppendTo(nil))
	f.Add(Poll{Layout: Weft, Flag: Both, HopLimit: 8, Flow: key(f, roce4)}.AppendTo(nil))
	f.Add(Poll{Layout: Weft, Event: Event{1, 2}, Flow: key(f, roce6)}.AppendTo(nil))
	f.Add(Poll{Layout: Weft, Unexplained: 99, Flow: key(f, roce4)}.AppendTo(nil))
	f.Add(Poll{Layout: Weft, Returning: true, Flow: key(f, roce4)}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var p Poll
		n, err := p.Parse(in)
		if err != nil {
			return
		}
		if out := p.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %x", in[:n], out)
		}
	})
}

func TestAllocs(t *testing.T) {
	p := Poll{Layout: Weft, Flow: key(t, roce6)}
	buf := p.AppendTo(nil)
	if n := testing.AllocsPerRun(100, func() { p.Parse(buf) }); n != 0 {
		t.Errorf("Parse allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { buf = p.AppendTo(buf[:0]) }); n != 0 {
		t.Errorf("AppendTo allocates %v times", n)
	}
}

func BenchmarkParse(b *testing.B) {
	in := Poll{Layout: Weft, Flow: key(b, roce4)}.AppendTo(nil)
	var p Poll
	for b.Loop() {
		p.Parse(in)
	}
}

func BenchmarkAppendTo(b *testing.B) {
	p := Poll{Layout: Weft, Flow: key(b, roce4)}
	buf := make([]byte, 0, MaxSize)
	for b.Loop() {
		buf = p.AppendTo(buf[:0])
	}
}
