package gnmi

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

var tor0 = netip.MustParseAddrPort("10.0.0.5:8080")

const second = model.Time(time.Second)

const t0 = 1_000_000 * second

func newTestDecoder(t testing.TB) (*decoder, *[]portstat.Reading) {
	var list []portstat.Reading
	d, err := Source.NewConfig().(*Config).NewDecoder(fabric(t), source.Output{Reading: func(r *portstat.Reading) { list = append(list, *r) }})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*decoder), &list
}

func response(at model.Time, path *gnmipb.Path, v *gnmipb.TypedValue) []byte {
	b, err := proto.Marshal(&gnmipb.SubscribeResponse{Response: &gnmipb.SubscribeResponse_Update{Update: &gnmipb.Notification{
		Timestamp: int64(at), Update: []*gnmipb.Update{{Path: path, Val: v}},
	}}})
	if err != nil {
		panic(err)
	}
	return b
}

func asJSON(format string, args ...any) *gnmipb.TypedValue {
	return &gnmipb.TypedValue{Value: &gnmipb.TypedValue_JsonIetfVal{JsonIetfVal: fmt.Appendf(nil, format, args...)}}
}

func number64(v uint64) *gnmipb.TypedValue {
	return &gnmipb.TypedValue{Value: &gnmipb.TypedValue_UintVal{UintVal: v}}
}

// TestOpenConfig: leaves one by one, as Arista sends them, and containers of JSON, as
// others do.
func TestOpenConfig(t *testing.T) {
	leaf := func(names ...string) *gnmipb.Path {
		p := elements(names...)
		for _, e := range p.Elem {
			switch e.Name {
			case "interface":
				e.Key = map[string]string{"name": "Ethernet4"}
			case "queue":
				e.Key = map[string]string{"name": "UC3"}
			}
		}
		return p
	}
	d, readings := newTestDecoder(t)
	for i := range uint64(2) {
		at := t0 + model.Time(i)*second
		d.Decode(at, tor0, response(at, leaf("interfaces", "interface", "state", "ifindex"), number64(77)))
		d.Decode(at, tor0, response(at, leaf("qos", "interfaces", "interface", "output", "queues", "queue", "state", "max-queue-len"), number64(5000)))
		d.Decode(at, tor0, response(at, leaf("interfaces", "interface", "state", "counters", "out-octets"), number64(100+1000*i)))
		d.Decode(at, tor0, response(at, leaf("interfaces", "interface", "state", "counters", "in-octets"), number64(200+2000*i)))
	}
	if len(*readings) != 1 {
		t.Fatalf("readings %+v; want one", *readings)
	}
	if r := &(*readings)[0]; r.RxBytes != 2000 || r.TxBytes != 1000 || r.Interval() != time.Second || r.Port.Port != 2 || r.Class[3].QueueWatermark != 5000 {
		t.Errorf("reading %+v; want 2000 bytes received, 1000 sent, and the queue", r)
	}
	if p, ok := d.names.PortByIndex(5, 77); !ok || p != 2 {
		t.Errorf("ifIndex 77 is port %d, %t; want 2: sFlow needs it", p, ok)
	}
	at := t0 + 2*second
	d.Decode(at, tor0, response(at, leaf("interfaces", "interface", "state", "counters"), asJSON(`{"openconfig-interfaces:in-octets":"9200","out-octets":"8100","carrier-transitions":3}`)))
	if len(*readings) != 2 || (*readings)[1].RxBytes != 7000 || (*readings)[1].TxBytes != 7000 {
		t.Errorf("readings %+v; want 7000 bytes each from the container", (*readings)[1:])
	}
}

// TestHostileTargets: wrong values, paths, times and names are counted, and make no
// reading.
func TestHostileTargets(t *testing.T) {
	port := elements("COUNTERS", "Ethernet0")
	for name, tc := range map[string]struct {
		data   []byte
		from   netip.AddrPort
		reason string
	}{
		"not a message":  {data: []byte{0xff, 0xff}, reason: "malformed"},
		"unknown target": {data: response(t0, port, asJSON(`{}`)), from: netip.MustParseAddrPort("192.0.2.9:1"), reason: "unknown target"},
		"not JSON":       {data: response(t0, port, asJSON(`{"a":`)), reason: "bad value"},
		"no value":       {data: response(t0, port, nil), reason: "bad value"},
		"unknown port":   {data: response(t0, elements("COUNTERS", "Ethernet400"), asJSON(`{"SAI_PORT_STAT_IF_IN_OCTETS":"1"}`)), reason: "unknown port"},
		"unknown path":   {data: response(t0, elements("STATE_DB", "x"), asJSON(`{}`)), reason: "other path"},
		"long path":      {data: response(t0, elements(strings.Split(strings.Repeat("x/", 50), "/")...), asJSON(`{}`)), reason: "other path"},
		"year 1970":      {data: response(second, port, asJSON(`{"SAI_PORT_STAT_IF_IN_OCTETS":"1"}`)), reason: "clock"},
	} {
		d, readings := newTestDecoder(t)
		from := tor0
		if tc.from.IsValid() {
			from = tc.from
		}
		d.Decode(t0, from, tc.data)
		count := uint64(0)
		for _, l := range d.Counters().Losses {
			if l.Reason == tc.reason {
				count = l.Count
			}
		}
		if count != 1 || len(*readings) != 0 {
			t.Errorf("%s: %+v, readings %+v; want one %s and no reading", name, d.Counters().Losses, *readings, tc.reason)
		}
	}
}

// FuzzDecode: no message panics.
func FuzzDecode(f *testing.F) {
	f.Add(response(t0, elements("COUNTERS", "Ethernet*"), asJSON(`{"Ethernet0":{"SAI_PORT_STAT_IF_IN_OCTETS":"1"}}`)))
	f.Add(response(t0, elements("COUNTERS", "Ethernet0", "Queues"), asJSON(`{"Ethernet0:3":{"SAI_QUEUE_STAT_BYTES":"1"}}`)))
	d, _ := newTestDecoder(f)
	f.Fuzz(func(_ *testing.T, b []byte) { d.Decode(t0, tor0, b) })
}

// TestWalkReadsJSON: of objects of any form it finds what the standard library finds.
func TestWalkReadsJSON(t *testing.T) {
	text := rapid.StringMatching(`[A-Za-z0-9_:|*-]{1,12}`)
	scalar := rapid.OneOf(rapid.Map(text, func(s string) any { return s }), rapid.Map(rapid.Int64(), func(v int64) any { return v }),
		rapid.Just[any](true), rapid.Just[any](nil), rapid.Just[any]([]any{1, map[string]any{"x": []any{}}}))
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOfN(text, rapid.OneOf(scalar, rapid.Map(rapid.MapOfN(text, scalar, 0, 4), func(m map[string]any) any { return m })), 0, 6).Draw(t, "object")
		b, err := json.MarshalIndent(object, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		note := func(key string, v any) {
			switch v := v.(type) {
			case string:
				want[key] = v
			case []any:
			default:
				one, _ := json.Marshal(v)
				want[key] = string(one)
			}
		}
		for k, v := range object {
			if m, nested := v.(map[string]any); nested {
				for k2, v2 := range m {
					note(k+" "+k2, v2)
				}
			} else {
				note(" "+k, v)
			}
		}
		got := map[string]string{}
		if err := walk(b, func(outer, key, val []byte) { got[string(outer)+" "+string(key)] = string(val) }); err != nil {
			t.Fatalf("walk(%s): %v", b, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("walk(%s) = %v; want %v", b, got, want)
		}
	})
}

// FuzzWalk: what is valid JSON of an object is read, if it is too short to be nested too
// deep; nothing panics.
func FuzzWalk(f *testing.F) {
	f.Add([]byte(`{"a":"1","b":{"c":2,"d":[1,{"e":null}]},"f":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var object map[string]json.RawMessage
		valid := json.Unmarshal(b, &object) == nil && object != nil
		if err := walk(b, func(_, _, _ []byte) {}); valid && err != nil && len(b) < 2*maxNesting {
			t.Fatalf("walk(%q) = %v of valid JSON", b, err)
		}
	})
}

func TestDecodeSpeedIsNotOfTheHeap(t *testing.T) {
	var fields strings.Builder
	for i := range 8 {
		fmt.Fprintf(&fields, `"SAI_PORT_STAT_PFC_%d_RX_PKTS":"%d",`, i, i)
	}
	table := []byte(`{` + fields.String() + `"SAI_PORT_STAT_IF_OUT_OCTETS":"5"}`)
	d, _ := newTestDecoder(t)
	x := extraction{d: d, n: d.nodes[5], when: t0}
	if n := testing.AllocsPerRun(100, func() { x.walk(table, "Ethernet0", false) }); n > 1 {
		t.Errorf("a table allocates %v times; want at most the closure", n)
	}
}
