package topo

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func TestFindPort(t *testing.T) {
	f := must(FatTree(4, DefaultLinks()))
	tor := id(t, f, "tor6")
	for text, want := range map[string]model.PortID{
		"tor6:Ethernet8":          3,
		"tor6:3":                  3,
		"tor6 Ethernet8":          3,
		"tor6 3":                  3,
		"tor6:cpu":                0,
		"tor6 Ethernet8 → leaf6":  3,
		"tor6 Ethernet8 -> leaf6": 3,
		"tor6:Ethernet8 > leaf6":  3,
		"tor6 → leaf6":            3,
		"tor6->leaf6":             3,
		"tor6>leaf7":              4,
	} {
		got, err := f.FindPort(text)
		if err != nil || got != (model.Port{Node: tor, Port: want}) {
			t.Errorf("FindPort(%q) = %v, %v; want %v, no error", text, got, err, model.Port{Node: tor, Port: want})
		}
	}
	for text, want := range map[string]string{
		"torr6:3":                `port "torr6:3": unknown node "torr6"; did you mean tor6?`,
		"tor6>leef6":             `port "tor6>leef6": unknown node "leef6"; did you mean leaf6?`,
		"tor6:Ethernt8":          `port "tor6:Ethernt8": tor6 has no port "Ethernt8"; did you mean Ethernet8?`,
		"tor6:9":                 `port "tor6:9": tor6 has no port "9"; did you mean Ethernet0?`,
		"tor6":                   `port "tor6": no port, want a form such as tor6:Ethernet0`,
		"tor6>tor7":              `port "tor6>tor7": no link from tor6 to tor7`,
		"tor6 Ethernet8 → leaf7": `port "tor6 Ethernet8 → leaf7": the port is tor6 Ethernet8 → leaf6`,
		"":                       `port "": unknown node ""; did you mean h0?`,
	} {
		if got, err := f.FindPort(text); err == nil || err.Error() != want {
			t.Errorf("FindPort(%q) = %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestFindPortOfParallelLinks(t *testing.T) {
	f := lab(t, [2]string{"a-", "b"}, [2]string{"a-", "b"}, [2]string{"a-", "c"})
	_, err := f.FindPort("a-→b")
	want := `port "a-→b": 2 links from a- to b, want one of a-:Ethernet0, a-:Ethernet4`
	if err == nil || err.Error() != want {
		t.Errorf("FindPort(a-→b) = %v; want %s", err, want)
	}
	if got, err := f.FindPort("a->c"); err != nil || got.Port != 3 {
		t.Errorf("FindPort(a->c), where the node is a-, = %v, %v; want port 3", got, err)
	}
}

// TestFindPortReadsItsNames writes every port in both forms and finds it again.
func TestFindPortReadsItsNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := randomFabric(t)
		for _, n := range f.Nodes() {
			for i := range len(n.Ports) + 1 {
				p := model.Port{Node: n.ID, Port: model.PortID(i)}
				for _, text := range []string{f.PortRef(p), f.PortName(p)} {
					if got, err := f.FindPort(text); err != nil || got != p {
						t.Fatalf("FindPort(%q) = %v, %v; want %v", text, got, err, p)
					}
				}
			}
		}
	})
}
