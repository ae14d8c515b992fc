package configdb

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inhost/settings"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// equalHosts are hosts that are set up as sonic's switches are.
func equalHosts(f *topo.Fabric) map[model.NodeID]*settings.Host {
	hosts := make(map[model.NodeID]*settings.Host)
	for _, id := range f.Hosts() {
		on, class := settings.Priorities(1<<3|1<<4), uint8(26<<2|2)
		notify, react := on, on
		hosts[id] = &settings.Host{Hostname: f.Node(id).Name, Interfaces: []settings.Interface{{
			Name: "eth1", MTU: 9100, PFC: &settings.PFC{Enabled: on, Classes: 8}, Pause: &settings.Pause{},
			Apps: &[]settings.App{{Selector: settings.DSCP, Protocol: 26, Priority: 3}, {Selector: settings.DSCP, Protocol: 48, Priority: 6}},
			RDMA: []settings.RDMA{{Device: "mlx5_0", Port: 1, NotifyECN: &notify, ReactECN: &react, TrafficClass: &class, CMTrafficClass: &class}},
		}}}
	}
	return hosts
}

// plant is a mismatch between h0 and leaf0 Ethernet0.
type plant struct {
	host     func(in *settings.Interface)
	switches []change
	want     Settings
	rule     string
	text     []string // both values
	mend     string
}

var plants = map[string]plant{
	"MTU above the switch's": {
		host: func(in *settings.Interface) { in.MTU = 9216 }, rule: MTU,
		text: []string{"MTU 9216 on h0 eth1", "9100 on leaf0 Ethernet0"}, mend: "on h0: ip link set eth1 mtu 9100",
	},
	"MTU below the fabric's": {
		host: func(in *settings.Interface) { in.MTU = 4000 }, want: Settings{MaxFrame: 4200}, rule: MTU,
		text: []string{"MTU 4000 on h0 eth1", "4200 bytes"}, mend: "on h0: ip link set eth1 mtu 4200",
	},
	"MTU of RDMA": {
		host: func(in *settings.Interface) { in.MTU = 1500 }, rule: RDMAMTU,
		text: []string{"MTU 1500 on h0 eth1", "packets of 1024 bytes", "leaf0 Ethernet0", "with MTU 9100 takes 4096"}, mend: "on h0: ip link set eth1 mtu 9100",
	},
	"PFC off": {
		host: func(in *settings.Interface) { in.PFC.Enabled = 1 << 3 }, rule: PFC,
		text: []string{"priority 4 is off at h0 eth1", "on at leaf0 Ethernet0"}, mend: "on h0: dcb pfc set dev eth1 prio-pfc 4:on",
	},
	"PFC on": {
		host: func(in *settings.Interface) { in.PFC.Enabled |= 1 << 5 }, rule: PFC,
		text: []string{"priority 5 is on at h0 eth1", "off at leaf0 Ethernet0"}, mend: "on h0: dcb pfc set dev eth1 prio-pfc 5:off",
	},
	"PFC that the fabric wants": {
		host: func(in *settings.Interface) { in.PFC.Enabled = 1 << 4 }, want: Settings{Lossless: 0x18}, rule: PFC,
		text: []string{"priority 3 is off at h0 eth1", "on at the fabric's settings"}, mend: "on h0: dcb pfc set dev eth1 prio-pfc 3:on",
	},
	"pause frames": {
		host: func(in *settings.Interface) { in.Pause.Send = true }, rule: PFC,
		text: []string{"pause frames of IEEE 802.3x", "h0 eth1", "PFC of 3, 4 at leaf0 Ethernet0"}, mend: "on h0: ethtool -A eth1 autoneg off rx off tx off",
	},
	"DSCP of the host": {
		host: func(in *settings.Interface) { (*in.Apps)[0].Priority = 4 }, rule: DSCP,
		text: []string{"DSCP 26 is priority 4 on h0 eth1", "traffic class 3 on leaf0 Ethernet0"}, mend: "on h0: dcb app replace dev eth1 dscp-prio 26:3",
	},
	"DSCP without a priority": {
		host: func(in *settings.Interface) { in.Apps = &[]settings.App{} }, rule: DSCP,
		text: []string{"DSCP 26 is without a priority on h0 eth1", "traffic class 3"}, mend: "on h0: dcb app replace dev eth1 dscp-prio 26:3",
	},
	"DSCP that is lossless at the host alone": {
		host: func(in *settings.Interface) {
			*in.Apps = append(*in.Apps, settings.App{Selector: settings.DSCP, Protocol: 24, Priority: 3}, settings.App{Selector: settings.DSCP, Protocol: 25, Priority: 3})
		},
		rule: DSCP, text: []string{"DSCP 24 to 25 is priority 3 on h0 eth1", "traffic class 0 on leaf0 Ethernet0"}, mend: "dcb app replace dev eth1 dscp-prio 24:0 25:0",
	},
	"traffic class of RDMA": {
		host: func(in *settings.Interface) { *in.RDMA[0].TrafficClass = 48 << 2 }, rule: DSCP,
		text: []string{"RDMA packets of h0 eth1 have DSCP 48", "traffic class 6 without PFC on leaf0 Ethernet0"},
		mend: "on h0: echo 104 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class",
	},
	"traffic class of RDMA_CM": {
		host: func(in *settings.Interface) { cm := uint8(4); in.RDMA[0].CMTrafficClass = &cm }, rule: DSCP,
		text: []string{"connections of RDMA_CM of h0 eth1 have DSCP 1"}, mend: "on h0: cma_roce_tos -d mlx5_0 -p 1 -t 104",
	},
	"no CNPs": {
		host: func(in *settings.Interface) { *in.RDMA[0].NotifyECN = 1 << 4 }, rule: ECN,
		text: []string{"queue 3 of leaf0 Ethernet0", "marks packets", "h0 eth1 never answers marked packets with CNPs: roce_np is off"},
		mend: "on h0: echo 1 > /sys/class/net/eth1/ecn/roce_np/enable/3",
	},
	"CNPs have no effect": {
		host: func(in *settings.Interface) { *in.RDMA[0].ReactECN = 1 << 3 }, rule: ECN,
		text: []string{"queue 4 of leaf0 Ethernet0", "marks packets", "h0 eth1 never sends slower after CNPs: roce_rp is off"},
		mend: "on h0: echo 1 > /sys/class/net/eth1/ecn/roce_rp/enable/4",
	},
	"no marks": {
		switches: []change{{"leaf0", "QUEUE", "Ethernet0|3-4", "wred_profile", ""}}, rule: ECN,
		text: []string{"queue 3 of leaf0 Ethernet0", "no ECN", "on leaf0 Ethernet4"}, mend: `on leaf0: assign a WRED profile with ECN to queue 3`,
	},
	"no marks anywhere": {
		switches: []change{
			{"leaf0", "WRED_PROFILE", "AZURE_LOSSLESS", "ecn", "ecn_none"},
			{"leaf1", "WRED_PROFILE", "AZURE_LOSSLESS", "ecn", "ecn_none"},
			{"leaf2", "WRED_PROFILE", "AZURE_LOSSLESS", "ecn", "ecn_none"},
			{"spine0", "WRED_PROFILE", "AZURE_LOSSLESS", "ecn", "ecn_none"},
			{"spine1", "WRED_PROFILE", "AZURE_LOSSLESS", "ecn", "ecn_none"},
		},
		rule: ECN, text: []string{"mlx5_0 of h0 eth1 answers marked packets with CNPs of priority 3", "queue 3 of leaf0 Ethernet0", "marks none"},
		mend: `on leaf0: sonic-db-cli CONFIG_DB HSET "WRED_PROFILE|AZURE_LOSSLESS" ecn ecn_all`,
	},
}

func compareWithHosts(t testing.TB, f *topo.Fabric, hosts map[model.NodeID]*settings.Host, want Settings, changes ...change) []Mismatch {
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
	return Compare(f, configs, hosts, want)
}

// TestPlantedHostMismatches: each is found, with both values and the command that mends it, and
// nothing else is.
func TestPlantedHostMismatches(t *testing.T) {
	f := fabric(t)
	for _, want := range []Settings{{}, {Lossless: 0x18, MaxFrame: 4200}} {
		if got := compareWithHosts(t, f, equalHosts(f), want); len(got) != 0 {
			t.Fatalf("equal hosts differ: %+v", got)
		}
	}
	for name, p := range plants {
		t.Run(name, func(t *testing.T) {
			hosts := equalHosts(f)
			h0, _ := f.ByName("h0")
			if p.host != nil {
				p.host(&hosts[h0].Interfaces[0])
			}
			got := compareWithHosts(t, f, hosts, p.want, p.switches...)
			for _, m := range got {
				if m.Rule != p.rule {
					t.Errorf("%s: %s; want %s alone", m.Rule, m.Text, p.rule)
				}
			}
			i := slices.IndexFunc(got, func(m Mismatch) bool {
				return !slices.ContainsFunc(p.text, func(text string) bool { return !strings.Contains(m.Text, text) })
			})
			if i < 0 {
				t.Fatalf("mismatches %+v; want one with %q", got, p.text)
			}
			if !strings.Contains(got[i].Mend, p.mend) || !slices.Contains(got[i].Places, "h0:eth1") {
				t.Errorf("mend %q at %v; want %q at h0:eth1", got[i].Mend, got[i].Places, p.mend)
			}
		})
	}
}

// TestAnyHostAnyPlant plants any of them on any host: its interface is named, and no other.
func TestAnyHostAnyPlant(t *testing.T) {
	f := fabric(t)
	names := []string{}
	for name, p := range plants {
		if p.host != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	rapid.Check(t, func(rt *rapid.T) {
		p := plants[rapid.SampledFrom(names).Draw(rt, "plant")]
		id := rapid.SampledFrom(f.Hosts()).Draw(rt, "host")
		hosts := equalHosts(f)
		p.host(&hosts[id].Interfaces[0])
		got := compareWithHosts(t, f, hosts, p.want)
		if len(got) == 0 {
			rt.Fatal("no mismatch")
		}
		for _, m := range got {
			if m.Rule != p.rule || m.Places[0] != f.Node(id).Name+":eth1" {
				rt.Fatalf("%+v; want %s at %s", m, p.rule, f.Node(id).Name)
			}
		}
	})
}

// TestUnansweredIsNotOff: what a driver does not answer is a note with its reason, and no mismatch.
func TestUnansweredIsNotOff(t *testing.T) {
	f := fabric(t)
	hosts := equalHosts(f)
	h0, _ := f.ByName("h0")
	h1, _ := f.ByName("h1")
	hosts[h0].Interfaces = []settings.Interface{{Name: "eth1", MTU: 9100, Unanswered: map[string]string{settings.QuestionDCB: "not supported by the driver ena"}}}
	delete(hosts, h1)
	hosts[f.Hosts()[2]].Interfaces[0].Name = "ens1"
	got := compareWithHosts(t, f, hosts, Settings{})
	var texts []string
	for _, m := range got {
		if m.Rule != Missing {
			t.Errorf("%s: %s; want notes alone", m.Rule, m.Text)
		}
		texts = append(texts, m.Text)
	}
	want := []string{
		"PFC of h0 eth1 was not compared: not supported by the driver ena",
		"priorities of DSCPs of h0 eth1 were not compared: not supported by the driver ena",
		"the fabric has h2 eth1 → leaf1, and the settings of h2 have no interface eth1",
		"1 host without settings, so nothing of them was compared: h1",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("%q; want %q", texts, want)
	}
}

// TestHostsAlone compares hosts with the fabric's settings where no switch has a configuration.
func TestHostsAlone(t *testing.T) {
	f := fabric(t)
	hosts := equalHosts(f)
	want := Settings{Lossless: 0x18, MaxFrame: 4200, Headroom: headroom}
	if got := Compare(f, nil, hosts, want); len(got) != 0 {
		t.Fatalf("equal hosts differ: %+v", got)
	}
	h0, _ := f.ByName("h0")
	hosts[h0].Interfaces[0].PFC.Enabled = 1 << 3
	if got := Compare(f, nil, hosts, want); len(got) != 1 || got[0].Rule != PFC || !slices.Equal(got[0].Places, []string{"h0:eth1"}) {
		t.Errorf("mismatches %+v; want PFC of h0", got)
	}
	if got := Compare(f, nil, hosts, Settings{Headroom: headroom}); len(got) != 0 {
		t.Errorf("mismatches %+v; want none where nothing is known of the fabric", got)
	}
}

// TestWrittenSettings compares settings that were written and read again.
func TestWrittenSettings(t *testing.T) {
	f := fabric(t)
	hosts := equalHosts(f)
	for id, h := range hosts {
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		read, err := settings.Parse("h.json", text)
		if err != nil {
			t.Fatal(err)
		}
		hosts[id] = &read[0]
	}
	if got := compareWithHosts(t, f, hosts, Settings{Lossless: 0x18, MaxFrame: 4200}); len(got) != 0 {
		t.Errorf("equal hosts differ: %+v", got)
	}
}
