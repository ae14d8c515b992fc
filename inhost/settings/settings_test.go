package settings

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

func example() Host {
	ecn, class, react := 1, uint8(106), Priorities(1<<3)
	return Host{
		Hostname: "h0.example", Time: time.Unix(1_700_000_000, 0).UTC(), TCPECN: &ecn,
		Interfaces: []Interface{{
			Name: "eth0", Driver: "mlx5_core", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, MTU: 9000,
			PFC: &PFC{Enabled: 1 << 3, Classes: 8}, ETS: &ETS{Classes: 8, Algorithm: [8]string{"ets", "strict"}},
			Apps:  &[]App{{DSCP, 26, 1}, {DSCP, 26, 3}, {EtherType, 0x8915, 4}, {DSCP, 48, 6}},
			Trust: []Selector{DSCP}, DCBX: &DCBX{Host: true, IEEE: true}, Pause: &Pause{Negotiated: true},
			RDMA: []RDMA{{Device: "mlx5_0", Port: 1, NotifyECN: &react, ReactECN: &react, TrafficClass: &class}},
		}, {Name: "eth1", MTU: 1500, Unanswered: map[string]string{QuestionDCB: "not supported by the driver veth"}}},
	}
}

func TestRoundTrip(t *testing.T) {
	want := example()
	one, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(one), " [" + string(one) + "]\n"} {
		got, err := Parse("h0.json", []byte(text))
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("Parse(%s) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	if strings.Contains(string(one[strings.Index(string(one), `"eth1"`):]), `"pfc"`) {
		t.Errorf("%s; want no pfc for an interface that does not answer", one)
	}
}

func TestLookups(t *testing.T) {
	h := example()
	eth0 := h.With("", netip.MustParseAddr("10.0.0.1"))
	if eth0 == nil || eth0.Name != "eth0" || h.With("eth1", netip.Addr{}).Name != "eth1" || h.With("eth9", netip.Addr{}) != nil {
		t.Errorf("interfaces %+v; want eth0 by its address, eth1 by its name, no eth9", eth0)
	}
	if got := eth0.PrioritiesOfDSCP(); !reflect.DeepEqual(got, map[int]int{26: 3, 48: 6}) {
		t.Errorf("priorities %v; want the higher one of DSCP 26, and that of 48", got)
	}
	for mtu, want := range map[int]int{9000: 4096, 4192: 4096, 4191: 2048, 1500: 1024, 352: 256, 351: 0} {
		if got := RDMAMTU(mtu); got != want {
			t.Errorf("RDMAMTU(%d) = %d; want %d", mtu, got, want)
		}
	}
	if s := Priorities(0b11000).String() + "/" + Priorities(0).String(); s != "3, 4/none" {
		t.Errorf("%q; want 3, 4/none", s)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                                "want the JSON of weft agent --settings",
		`[]`:                              "x.json: 0 hosts, want 1",
		`{"hostname": "h"}`:               `host 0 ("h"): 0 interfaces`,
		`{"interfaces": [{"name": "a"}]}`: "hostname of 0 bytes",
		`[{"hostname": "h", "interfaces": [{"name": "a"}, {"name": "a"}]}]`:                                          `interface 1 has the name "a"`,
		`{"hostname": "h", "interfaces": [{"name": "a", "mtu": -1}]}`:                                                "interface a: MTU -1",
		`{"hostname": "h", "interfaces": [{"name": "a", "pfc": {"enabled": [8]}}]}`:                                  "priority 8, want 0 to 7",
		`{"hostname": "h", "interfaces": [{"name": "a", "apps": [{"selector": "dscp", "protocol": 64}]}]}`:           "DSCP 64",
		`{"hostname": "h", "interfaces": [{"name": "a", "apps": [{"selector": "port", "priority": 8}]}]}`:            "priority 8",
		`{"hostname": "h", "interfaces": [{"name": "a", "ets": {"class_by_priority": [0, 9, 0, 0, 0, 0, 0, 0]}}]}`:   "priority 1 has traffic class 9",
		`{"hostname": "h", "interfaces": [{"name": "a", "rdma": [` + strings.Repeat(`{}, `, 64) + `{}]}]}`:           "65 RDMA ports",
		`{"hostname": "h", "interfaces": [{"name": "a", "apps": [` + strings.Repeat(`{}, `, maxApps) + `{}]}]}`:      "4097 apps",
		`{"hostname": "h", "interfaces": [` + strings.TrimSuffix(strings.Repeat(`{},`, maxInterfaces+1), ",") + `]}`: "4097 interfaces",
		`{"hostname": "` + strings.Repeat("h", 256) + `", "interfaces": [{"name": "a"}]}`:                            "hostname of 256 bytes",
	} {
		if _, err := Parse("x.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.80s) = %v; want %q", text, err, want)
		}
	}
}

// FuzzParse: what is accepted is written and read back the same.
func FuzzParse(f *testing.F) {
	h := example()
	one, _ := json.Marshal(h)
	f.Add(one)
	f.Add([]byte(`[{"hostname": "h", "interfaces": [{"name": "a", "apps": []}]}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		hosts, err := Parse("fuzz.json", in)
		if err != nil {
			return
		}
		out, err := json.Marshal(hosts)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("again.json", out)
		if err != nil {
			t.Fatalf("%s was accepted, and %s is not: %v", in, out, err)
		}
		if second, _ := json.Marshal(again); string(second) != string(out) {
			t.Fatalf("written %s, then %s", out, second)
		}
	})
}
