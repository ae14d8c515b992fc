package erspan

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/mirror"
)

func prefixes(t *testing.T, text string) []netip.Prefix {
	t.Helper()
	list, err := source.ParsePrefixes(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSourceAddressIsTheSwitch: a switch with an address mirrors from there alone, one
// without from that of the topology, and ports that it has not are left out.
func TestSourceAddressIsTheSwitch(t *testing.T) {
	inTopology := map[model.Addr]model.NodeID{model.Addr4(10<<24 | 1): 1, model.Addr4(10<<24 | 2): 2}
	f := &source.Fabric{
		Switches: []source.Switch{
			{ID: 1, Name: "tor0", Addr: model.Addr4(10<<24 | 1), Ports: 4},
			{ID: 2, Name: "tor1", Addr: model.Addr4(10<<24 | 2), Ports: 4, Prefixes: prefixes(t, "192.0.2.2")},
		},
		ByAddr: func(a model.Addr) (model.NodeID, bool) { id, ok := inTopology[a]; return id, ok },
	}
	var got []mirror.Mirror
	refused := map[netip.Addr]translate.Refusal{}
	out := source.Output{
		Mirror:  func(_ model.Time, m *mirror.Mirror) { got = append(got, *m) },
		Refused: func(from netip.Addr, why translate.Refusal, _ int) { refused[from] = why },
	}
	cfg := Source.NewConfig().(*SourceConfig)
	cfg.Listen = netip.MustParseAddr("127.0.0.1")
	d, err := cfg.NewDecoder(f, out)
	if err != nil {
		t.Fatal(err)
	}
	for i, from := range []string{"10.0.0.1", "192.0.2.2", "10.0.0.2", "192.0.2.9"} {
		packet := erspan.Mirror{Kind: erspan.TypeII, GRE: seq(uint32(i)), Index: uint32(4 + i), Frame: inside}.AppendTo(nil)
		d.Decode(1, netip.AddrPortFrom(netip.MustParseAddr(from), 0), packet)
	}
	if len(got) != 2 || got[0].Switch != 1 || got[0].In != 4 || got[1].Switch != 2 || got[1].In != 0 {
		t.Errorf("mirrors %+v; want one of port 4 of tor0, and one of tor1 whose port 5 is not known", got)
	}
	for _, from := range []string{"10.0.0.2", "192.0.2.9"} {
		if why := refused[netip.MustParseAddr(from)]; why != translate.UnknownReporter {
			t.Errorf("%s: %v; want it refused: it is the address of no switch", from, why)
		}
	}

	f.Switches[0].Prefixes = prefixes(t, "192.0.2.0/24,192.0.2.2")
	if _, err := cfg.NewDecoder(f, out); err == nil || !strings.Contains(err.Error(), "tor0 and tor1 have address 192.0.2.2") {
		t.Errorf("two switches of one address: %v; want an error that names both", err)
	}
	cfg.Listen = netip.Addr{}
	if _, err := cfg.NewDecoder(f, out); err != nil {
		t.Errorf("two switches of one address, without ERSPAN: %v", err)
	}
}
