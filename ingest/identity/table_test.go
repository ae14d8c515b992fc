package identity

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

// four is a switch with ports Ethernet0, 4, 8 and 12.
func four(id model.NodeID, name string, addrs ...string) Switch {
	s := Switch{ID: id, Name: name, Ports: 4, Port: func(text string) (model.PortID, bool) {
		n, err := strconv.Atoi(strings.TrimPrefix(text, "Ethernet"))
		if err != nil || n%4 != 0 || n > 12 || !strings.HasPrefix(text, "Ethernet") {
			return 0, false
		}
		return model.PortID(n/4 + 1), true
	}}
	for _, a := range addrs {
		s.Addrs = append(s.Addrs, netip.MustParseAddr(a))
	}
	return s
}

func portName(p model.PortID) string { return fmt.Sprintf("Ethernet%d", 4*(p-1)) }

func TestLookups(t *testing.T) {
	a := four(3, "tor0", "10.0.0.3", "2001:db8::3")
	a.Indexes = map[uint32]model.PortID{9: 2}
	tab, err := New([]Switch{a, four(4, "tor1", "10.0.0.4")})
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := tab.NodeByAddr(netip.MustParseAddr("::ffff:10.0.0.3")); !ok || id != 3 {
		t.Errorf("NodeByAddr = %d, %t; want 3", id, ok)
	}
	if _, ok := tab.NodeByAddr(netip.MustParseAddr("10.0.0.5")); ok {
		t.Error("an address of nobody has a switch")
	}
	if _, ok := tab.PortByIndex(3, 1); ok {
		t.Error("an ifIndex is known before it was learned")
	}
	if p, ok := tab.LearnIndex(3, 1, "Ethernet8"); !ok || p != 3 {
		t.Errorf("LearnIndex = %d, %t; want 3", p, ok)
	}
	if _, ok := tab.PortByIndex(4, 1); ok {
		t.Error("tor1 has the ifIndex of tor0")
	}
	// A management port is known, and no port.
	if p, ok := tab.LearnIndex(3, 2, "eth0"); !ok || p != 0 {
		t.Errorf("LearnIndex(eth0) = %d, %t; want 0", p, ok)
	}
	// The configuration wins.
	if p, _ := tab.LearnIndex(3, 9, "Ethernet0"); p != 2 {
		t.Errorf("the configured ifIndex 9 is port %d after learning; want 2", p)
	}
	// A restart renumbers.
	tab.LearnIndex(3, 1, "Ethernet0")
	if p, _ := tab.PortByIndex(3, 1); p != 1 {
		t.Errorf("ifIndex 1 is port %d after it was renamed; want 1", p)
	}
	if !tab.LearnAlias(3, "etp3", "Ethernet8") {
		t.Error("the alias etp3 was not learned")
	}
	if p, ok := tab.PortByName(3, "etp3"); !ok || p != 3 {
		t.Errorf("etp3 is port %d, %t; want 3", p, ok)
	}
	if tab.LearnAlias(3, "Ethernet0", "Ethernet8") {
		t.Error("a port's own name became another's alias")
	}
	if got, want := tab.Stats(), (Stats{Learned: 3, Changed: 1, Conflicts: 2}); got != want {
		t.Errorf("Stats = %+v; want %+v", got, want)
	}
}

func TestSameAddressTwice(t *testing.T) {
	_, err := New([]Switch{four(1, "tor0", "10.0.0.1"), four(2, "tor1", "10.0.0.1")})
	if err == nil || !strings.Contains(err.Error(), "tor0 and tor1") {
		t.Errorf("New = %v; want an error that names both switches", err)
	}
}

// TestLearningIsBounded: a switch that invents interfaces fills its own share and no
// more, and what it has learned stays.
func TestLearningIsBounded(t *testing.T) {
	tab, err := New([]Switch{four(1, "tor0"), four(2, "tor1")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(100_000) {
		tab.LearnIndex(1, i+1, "vlan"+strconv.Itoa(int(i)))
	}
	bound := uint64(4*maxLearned + maxExtra)
	if s := tab.Stats(); s.Learned != bound || s.Full != 100_000-bound {
		t.Errorf("Stats = %+v; want %d learned and the rest refused", s, bound)
	}
	if _, ok := tab.LearnIndex(2, 7, "Ethernet0"); !ok {
		t.Error("another switch cannot learn")
	}
}

// TestTableIsAMap: any sequence of learning gives what the newest entry of each
// ifIndex says.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab, err := New([]Switch{four(1, "tor0")})
		if err != nil {
			t.Fatal(err)
		}
		want := map[uint32]model.PortID{}
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			index := rapid.Uint32Range(1, 6).Draw(t, "ifIndex")
			p := model.PortID(rapid.IntRange(0, 4).Draw(t, "port"))
			name := "eth0"
			if p > 0 {
				name = portName(p)
			}
			tab.LearnIndex(1, index, name)
			want[index] = p
		}
		for index, p := range want {
			if got, ok := tab.PortByIndex(1, index); !ok || got != p {
				t.Fatalf("ifIndex %d is port %d, %t; want %d", index, got, ok, p)
			}
		}
	})
}

func TestParseIndexes(t *testing.T) {
	s := four(1, "tor0")
	for text, want := range map[string]string{
		"":                           "map[]",
		"learned":                    "map[]",
		"port":                       "map[1:1 2:2 3:3 4:4]",
		"sonic":                      "map[1:1 5:2 9:3 13:4]",
		"7=Ethernet8, 9 = Ethernet0": "map[7:3 9:1]",
		"7=Ethernet9":                `"Ethernet9" is not a port of the switch`,
		"Ethernet8":                  `"Ethernet8", want learned, sonic, port, or a list such as 1=Ethernet0,5=Ethernet4`,
		"0=Ethernet8":                `"0=Ethernet8", want learned, sonic, port, or a list such as 1=Ethernet0,5=Ethernet4`,
		"1=Ethernet0,1=Ethernet4":    "ifIndex 1 is given twice",
	} {
		m, err := ParseIndexes(text, s.Ports, portName, s.Port)
		got := fmt.Sprint(m)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("ParseIndexes(%q) = %s; want %s", text, got, want)
		}
	}
	if _, err := ParseIndexes("sonic", 1, func(model.PortID) string { return "swp1" }, s.Port); err == nil {
		t.Error("swp1 has an ifIndex of SONiC's")
	}
}
