package serve

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/sflow"
	"github.com/weft-telemetry/weft/model"
	wiresflow "github.com/weft-telemetry/weft/wire/sflow"
)

// TestSFlowShowsPorts: a switch that speaks nothing but sFlow has the load of its
// ports in the state of the fabric, and so has a replay of what was recorded.
func TestSFlowShowsPorts(t *testing.T) {
	cfg := testConfig(t)
	set(t, &cfg, "sflow.listen", "127.0.0.1:0")
	cfg.Record.Path = filepath.Join(t.TempDir(), "reports.pcapng")
	fab, err := readFabric(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	tor := fab.doc.Fabric.Node(fab.doc.Fabric.Node(fab.doc.Fabric.Hosts()[0]).Ports[0].Peer.Node)
	cfg.Switches = []Switch{{Name: tor.Name, Values: map[string]string{"ifindex": "port"}}}
	b := start(t, cfg)
	conn, err := net.Dial("udp", b.address(string(sflow.Source.Kind)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const load = 40 * model.Gbps
	for i := range 3 {
		h := wiresflow.Header{Agent: tor.IPv4.Netip(), Seq: uint32(i), Uptime: 1000*time.Second + time.Duration(i)*500*time.Millisecond, Samples: 2}
		count := wiresflow.Sample{
			Kind: wiresflow.Count, Seq: uint32(i), Source: wiresflow.Source{Index: 2}, Has: wiresflow.HasPort,
			Port: wiresflow.IfCounters{IfIndex: 2, OutOctets: uint64(i) * uint64(load) / 16},
		}
		sample := wiresflow.Sample{
			Kind: wiresflow.Flow, Rate: 256, In: wiresflow.Interface{Value: 1}, Out: wiresflow.Interface{Value: 2}, Has: wiresflow.HasPacket,
			Packet: wiresflow.Packet{Protocol: wiresflow.HeaderEthernet, Length: 1500, Header: frame(fab.doc.Fabric, 0, 2, 1000, 7)},
		}
		if _, err := conn.Write(sample.AppendTo(count.AppendTo(h.AppendTo(nil)))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all samples are taken", func() bool { return b.stage("sflow").Out == 6 })
	b.clean("sflow")
	var seen api.PortState
	eventually(t, "the port has a load", func() bool {
		st, err := b.api.State(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range st.Ports {
			if p.Node == tor.Name && p.Port == 2 {
				seen = p
			}
		}
		return seen.LoadBps > 0
	})
	if seen.LoadBps != int64(load) || seen.AgeMs < 0 {
		t.Errorf("port 2 of %s: %+v; want a load of %v", tor.Name, seen, load)
	}
	b.clean("counters")
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	_, found := replayed(t, cfg, capture.Input{Path: cfg.Record.Path})
	if found.Reports["sflow"] != 3 || found.Ports != 1 {
		t.Errorf("the replay found %d datagrams and %d ports; want 3 and 1", found.Reports["sflow"], found.Ports)
	}
}

// address is where a source receives.
func (b *bed) address(kind string) string {
	b.t.Helper()
	for _, one := range b.input.NoData().SendTo {
		if one.Source == kind {
			return one.Address
		}
	}
	b.t.Fatalf("no source %s", kind)
	return ""
}
