package configdb

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"pgregory.net/rapid"
)

// database is a CONFIG_DB that tests change before they write it.
type database map[string]map[string]map[string]string

// sonic returns the CONFIG_DB of a switch as SONiC's templates make it.
func sonic(n *topo.Node) database {
	db := database{
		"DEVICE_METADATA": {"localhost": {"hostname": n.Name}},
		"PORT":            {}, "PORT_QOS_MAP": {}, "QUEUE": {}, "BUFFER_PG": {}, "CABLE_LENGTH": {"AZURE": {}},
		"DSCP_TO_TC_MAP": {"AZURE": {"0": "1", "26": "3", "48": "6"}},
		"WRED_PROFILE": {"AZURE_LOSSLESS": {
			"ecn": "ecn_all", "green_min_threshold": "250000", "green_max_threshold": "1048576", "green_drop_probability": "5",
		}},
		"BUFFER_PROFILE": {"pg_lossless_100000_40m_profile": {"xon": "18432", "xoff": "160000", "size": "18432", "dynamic_th": "0"}},
	}
	for i := range n.Ports {
		name := n.Ports[i].Name
		db["PORT"][name] = map[string]string{"mtu": "9100", "speed": fmt.Sprint(int64(n.Ports[i].Rate / model.Mbps))}
		db["PORT_QOS_MAP"][name] = map[string]string{"pfc_enable": "3,4", "dscp_to_tc_map": "[DSCP_TO_TC_MAP|AZURE]"}
		db["QUEUE"][name+"|3-4"] = map[string]string{"wred_profile": "AZURE_LOSSLESS"}
		db["BUFFER_PG"][name+"|3-4"] = map[string]string{"profile": "pg_lossless_100000_40m_profile"}
		db["CABLE_LENGTH"]["AZURE"][name] = "40m"
	}
	return db
}

func fabric(t testing.TB) *topo.Fabric {
	f, err := topo.LeafSpine(3, 2, 2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func parse(t testing.TB, db database) *Config {
	data, err := json.Marshal(db)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("test.json", data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// headroom is a formula for tests: both directions of the wire and three frames.
func headroom(rate model.Rate, delay time.Duration, frame model.Bytes) model.Bytes {
	return model.Bytes(2*delay.Seconds()*float64(rate)/8) + 3*frame
}

// change changes one value of one switch.
type change struct {
	node                  string
	table, key, field, to string
}

func compare(t testing.TB, f *topo.Fabric, want Settings, changes ...change) []Mismatch {
	configs := make(map[model.NodeID]*Config)
	for _, id := range f.Switches() {
		db := sonic(f.Node(id))
		for _, c := range changes {
			if c.node == f.Node(id).Name {
				db[c.table][c.key][c.field] = c.to
			}
		}
		configs[id] = parse(t, db)
	}
	want.Headroom = headroom
	return Compare(f, configs, nil, want)
}

func TestCompare(t *testing.T) {
	f := fabric(t)
	if got := compare(t, f, Settings{Lossless: 0x18, MaxFrame: 4200}); len(got) != 0 {
		t.Fatalf("equal switches differ: %+v", got)
	}
	ecn := func(model.Rate) (kmin, kmax model.Bytes, ok bool) { return 250_000, 2_000_000, true }
	for name, tc := range map[string]struct {
		change change
		want   Settings
		rule   string
		text   []string // both values
		mend   string
	}{
		"MTU": {
			change: change{"spine0", "PORT", "Ethernet0", "mtu", "1500"}, rule: MTU,
			text: []string{"MTU 1500 on spine0 Ethernet0", "9100 on leaf0 Ethernet8"},
			mend: "on spine0: config interface mtu Ethernet0 9100",
		},
		"MTU of a host's port": {
			change: change{"leaf0", "PORT", "Ethernet0", "mtu", "1500"}, want: Settings{MaxFrame: 4200}, rule: MTU,
			text: []string{"MTU 1500 on leaf0 Ethernet0", "4200 bytes"}, mend: "on leaf0: config interface mtu Ethernet0 4200",
		},
		"PFC": {
			change: change{"leaf1", "PORT_QOS_MAP", "Ethernet8", "pfc_enable", "3"}, rule: PFC,
			text: []string{"priority 4 is on at spine0 Ethernet4", "off at leaf1 Ethernet8"},
			mend: "on leaf1: config interface pfc priority Ethernet8 4 on",
		},
		"PFC that the fabric does not want": {
			change: change{"leaf1", "PORT_QOS_MAP", "Ethernet8", "pfc_enable", "3,4,5"}, want: Settings{Lossless: 0x18}, rule: PFC,
			text: []string{"priority 5 is on at leaf1 Ethernet8"}, mend: "on leaf1: config interface pfc priority Ethernet8 5 off",
		},
		"PFC to a host": {
			change: change{"leaf1", "PORT_QOS_MAP", "Ethernet0", "pfc_enable", "4"}, want: Settings{Lossless: 0x18}, rule: PFC,
			text: []string{"on for 4 on leaf1 Ethernet0", "priorities are 3, 4"}, mend: "on leaf1: config interface pfc priority Ethernet0 3 on",
		},
		"DSCP": {
			change: change{"leaf2", "DSCP_TO_TC_MAP", "AZURE", "26", "4"}, rule: DSCP,
			text: []string{"DSCP 26 is traffic class 4 on leaf2", "traffic class 3"},
			mend: `on leaf2: sonic-db-cli CONFIG_DB HSET "DSCP_TO_TC_MAP|AZURE" 26 3`,
		},
		"speed": {
			change: change{"leaf0", "PORT", "Ethernet0", "speed", "25000"}, rule: Speed,
			text: []string{"speed 25 Gb/s on leaf0 Ethernet0", "100 Gb/s"}, mend: "on leaf0: config interface speed Ethernet0 100000",
		},
		"ECN of most": {
			change: change{"spine1", "WRED_PROFILE", "AZURE_LOSSLESS", "green_min_threshold", "900000"}, rule: ECN,
			text: []string{"Kmin 900000 and Kmax 1048576", "Kmin 250000 and Kmax 1048576"},
			mend: "on spine1: config ecn -profile AZURE_LOSSLESS -gmin 250000 -gmax 1048576",
		},
		"ECN of the fabric": {
			want: Settings{ECN: ecn}, rule: ECN,
			text: []string{"Kmax 1048576", "Kmax 2000000 in the fabric's settings"}, mend: "config ecn -profile AZURE_LOSSLESS -gmin 250000 -gmax 2000000",
		},
		"headroom": {
			change: change{"leaf0", "CABLE_LENGTH", "AZURE", "Ethernet8", "2000m"}, rule: Headroom,
			text: []string{"160 kB of headroom", "up to 277 kB", "10 µs"}, mend: "on leaf0: config buffer profile set pg_lossless_100000_40m_profile --xoff 277300",
		},
		"no headroom": {
			change: change{"leaf0", "PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3,4,6"}, rule: NoBuffer,
			text: []string{"priority 6 is on at leaf0 Ethernet0"}, mend: "on leaf0: config interface buffer priority-group lossless add Ethernet0 6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var changes []change
			if tc.change.node != "" {
				changes = append(changes, tc.change)
			}
			got := compare(t, f, tc.want, changes...)
			if len(got) == 0 {
				t.Fatal("no mismatch")
			}
			for _, m := range got {
				// A priority that is new to a port has neither headroom nor marking there.
				newPriority := tc.change.field == "pfc_enable" && (m.Rule == NoBuffer || m.Rule == ECN)
				if m.Rule != tc.rule && !newPriority {
					t.Errorf("%s: %s; want %s", m.Rule, m.Text, tc.rule)
				}
			}
			i := slices.IndexFunc(got, func(m Mismatch) bool { return m.Rule == tc.rule })
			if i < 0 {
				t.Fatalf("mismatches %+v; want %s", got, tc.rule)
			}
			for _, text := range tc.text {
				if !strings.Contains(got[i].Text, text) {
					t.Errorf("%q; want %q in it", got[i].Text, text)
				}
			}
			if !strings.Contains(got[i].Mend, tc.mend) {
				t.Errorf("mend %q; want %q", got[i].Mend, tc.mend)
			}
		})
	}
}

// TestOneCommandIsOneMismatch: a profile of many ports is mended once.
func TestOneCommandIsOneMismatch(t *testing.T) {
	f := fabric(t)
	got := compare(t, f, Settings{}, change{"leaf0", "BUFFER_PROFILE", "pg_lossless_100000_40m_profile", "xoff", "20000"})
	if len(got) != 1 || len(got[0].Places) != 4 || !strings.Contains(got[0].Text, "and 3 other ports") {
		t.Errorf("mismatches %+v; want one of four ports", got)
	}
}

func TestMissing(t *testing.T) {
	f := fabric(t)
	leaf, _ := f.ByName("leaf0")
	db := sonic(f.Node(leaf))
	delete(db["PORT"], "Ethernet8")
	got := Compare(f, map[model.NodeID]*Config{leaf: parse(t, db)}, nil, Settings{Headroom: headroom})
	if len(got) != 5 || slices.ContainsFunc(got, func(m Mismatch) bool { return m.Rule != Missing }) {
		t.Errorf("mismatches %+v; want a port and four switches without a configuration", got)
	}
}

// TestEveryChangeIsFound changes one value that must agree, of a random port.
func TestEveryChangeIsFound(t *testing.T) {
	f := fabric(t)
	rapid.Check(t, func(t *rapid.T) {
		n := f.Node(rapid.SampledFrom(f.Switches()).Draw(t, "switch"))
		port := n.Ports[rapid.IntRange(0, len(n.Ports)-1).Draw(t, "port")].Name
		c := rapid.SampledFrom([]change{
			{n.Name, "PORT", port, "mtu", "2048"},
			{n.Name, "PORT", port, "speed", "40000"},
			{n.Name, "PORT_QOS_MAP", port, "pfc_enable", "3"},
			{n.Name, "DSCP_TO_TC_MAP", "AZURE", "0", "2"},
			{n.Name, "WRED_PROFILE", "AZURE_LOSSLESS", "green_max_threshold", "2000000"},
			{n.Name, "BUFFER_PROFILE", "pg_lossless_100000_40m_profile", "xoff", "20000"},
		}).Draw(t, "change")
		configs := make(map[model.NodeID]*Config)
		for _, id := range f.Switches() {
			db := sonic(f.Node(id))
			if f.Node(id).Name == c.node {
				db[c.table][c.key][c.field] = c.to
			}
			data, _ := json.Marshal(db)
			var err error
			if configs[id], err = Parse("test.json", data); err != nil {
				t.Fatal(err)
			}
		}
		if got := Compare(f, configs, nil, Settings{Headroom: headroom, Lossless: 0x18, MaxFrame: 4200}); len(got) == 0 {
			t.Fatalf("%+v was not found", c)
		}
	})
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"[]": "want the JSON of CONFIG_DB",
		"{}": "no table PORT",
		`{"PORT": {"Ethernet0": {"mtu": "large"}}}`: `x.json: PORT|Ethernet0: mtu "large", want a number`,
		`{"PORT": []}`: "x.json: PORT: ",
		`{"PORT": {"E": {}}, "PORT_QOS_MAP": {"E": {"pfc_enable": "9"}}}`:                         "PORT_QOS_MAP|E: pfc_enable \"9\", want priorities",
		`{"PORT": {"E": {}}, "QUEUE": {"E|3": {"wred_profile": "P"}}}`:                            `QUEUE|E|3: wred_profile "P", want one of`,
		`{"PORT": {"E": {}}, "CABLE_LENGTH": {"A": {"E": "far"}}}`:                                `CABLE_LENGTH: E "far", want metres`,
		`{"PORT": {"E": {}}, "WRED_PROFILE": {"P": {}}, "QUEUE": {"E|x": {"wred_profile": "P"}}}`: "QUEUE|E|x: want ports and numbers",
		`{"PORT": {"E": {}}, "DSCP_TO_TC_MAP": {"A": {"64": "1"}}}`:                               "DSCP_TO_TC_MAP|A: \"64\" to \"1\", want a DSCP",
	} {
		if _, err := Parse("x.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%s) = %v; want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, _ := json.Marshal(sonic(fabric(f).Node(6)))
	f.Add(data)
	f.Add([]byte(`{"PORT": {"E": {"mtu": "9100"}}, "QUEUE": {"E|0-63": {}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := Parse("fuzz.json", in)
		if err == nil && len(c.Ports) == 0 {
			t.Fatal("no error and no port")
		}
	})
}
