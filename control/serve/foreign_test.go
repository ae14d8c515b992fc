package serve

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/gre"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// each calls f with the data of reports to some lists in a datagram.
func each(t *testing.T, datagram []byte, lists control.ListRange, f func(data []byte)) {
	var r dta.Reader
	if err := r.Reset(datagram); err != nil {
		t.Error(err)
	}
	for rep := (dta.Report{}); r.Next(&rep); {
		if rep.List >= lists.First && rep.List < lists.First+dta.ListID(lists.Count) {
			f(rep.Data)
		}
	}
}

// goRound makes a switch and another below it send packets of a few flows to
// each other.
func (l *lab) goRound() (sw model.NodeID) {
	f := l.Network.Fabric()
	sw, host, tor := l.middle()
	other := f.Node(sw).Ports[slices.IndexFunc(f.Node(sw).Ports, func(p topo.Port) bool {
		return f.Node(p.Peer.Node).Tier == 1 && p.Peer.Node != tor
	})].Peer.Node
	var from []model.NodeID
	for _, p := range f.Node(other).Ports {
		if !f.Node(p.Peer.Node).Role.IsSwitch() {
			from = append(from, p.Peer.Node)
		}
	}
	var list []traffic.Flow
	for i := range 6 {
		one := l.flow(from[i%len(from)], host, uint16(30000+i))
		one.Rate = 2 * model.Mbps
		list = append(list, one)
	}
	l.Change(func() error { return l.Network.AddFlows(list) })
	l.reroute(host, sim.Entry{Switch: sw, Via: []model.NodeID{other}}, sim.Entry{Switch: other, Via: []model.NodeID{sw}})
	return sw
}

// stage is one of the pipeline's.
func (b *bed) stage(name string) api.Stage {
	b.t.Helper()
	h, err := b.api.Health(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range h.Stages {
		if s.Name == name {
			return s
		}
	}
	b.t.Fatalf("no stage %s in %+v", name, h.Stages)
	return api.Stage{}
}

// clean fails the test for anything that a stage lost.
func (b *bed) clean(name string) {
	b.t.Helper()
	s := b.stage(name)
	if s.Out == 0 {
		b.t.Errorf("nothing came through %s: %+v", name, s)
	}
	for _, l := range s.Losses {
		if l.Count != 0 && !l.Expected {
			b.t.Errorf("%s lost %d: %s %s", name, l.Count, l.Reason, l.About)
		}
	}
}

// TestLoopInERSPAN: mirrors of switches that speak nothing but ERSPAN show that
// packets go round.
func TestLoopInERSPAN(t *testing.T) {
	cfg := testConfig(t)
	set(t, &cfg, "erspan.listen", "127.0.0.1")
	own := func(id model.NodeID) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 1, byte(id)}) }
	f, err := readFabric(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range f.doc.Fabric.Switches() {
		cfg.Switches = append(cfg.Switches, Switch{Name: f.doc.Fabric.Node(id).Name, Values: map[string]string{"address": own(id).String()}})
	}
	if conn, err := net.ListenIP("ip4:47", &net.IPAddr{IP: net.IPv4(127, 0, 0, 1)}); errors.Is(err, os.ErrPermission) {
		t.Skipf("a raw socket takes CAP_NET_RAW, which root has, as in CI: %v", err)
	} else if err == nil {
		conn.Close()
	}
	l := newLab(t, start(t, cfg))
	conns, seq := map[model.NodeID]net.Conn{}, map[model.NodeID]uint32{}
	l.send = func(from model.NodeID, datagram []byte) {
		each(t, datagram, l.b.fabric.lists.Mirrors, func(data []byte) {
			var m mirror.Mirror
			if _, err := m.Parse(data); err != nil {
				t.Error(err)
				return
			}
			if conns[from] == nil {
				conn, err := net.DialIP("ip4:47", &net.IPAddr{IP: own(from).AsSlice()}, &net.IPAddr{IP: net.IPv4(127, 0, 0, 1)})
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { conn.Close() })
				conns[from] = conn
			}
			out := erspan.Mirror{Kind: erspan.TypeII, GRE: gre.Header{HasSeq: true, Seq: seq[from]}, Index: uint32(m.In), Frame: m.Frame}
			seq[from]++
			_, _ = conns[from].Write(out.AppendTo(nil))
		})
	}
	l.chatter()
	sw := l.goRound()
	l.Start()
	in := l.found(t, sw, "loop")
	if got := evidenceSources(in); !slices.Equal(got, []string{"traces"}) {
		t.Errorf("the loop is known by %v; want traces alone", got)
	}
	l.only(t, l.name(sw))
	l.b.clean("erspan")
	l.b.clean("readers")
}

// TestLoopInINTReports: so do INT reports with the start of a packet in them, and
// they show queues.
func TestLoopInINTReports(t *testing.T) {
	l := newLab(t, start(t, testConfig(t)))
	conn, err := net.Dial("udp", l.b.SourceAddr("int").String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	seq := map[model.NodeID]uint32{}
	send := func(from model.NodeID, r intreport.Report) {
		_, _ = conn.Write(r.AppendTo(intreport.Group{Node: uint32(from), Seq: seq[from]}.AppendTo(nil)))
		seq[from]++
	}
	l.send = func(from model.NodeID, datagram []byte) {
		each(t, datagram, l.b.fabric.lists.Mirrors, func(data []byte) {
			var m mirror.Mirror
			if _, err := m.Parse(data); err != nil {
				t.Error(err)
				return
			}
			r := intreport.Report{Type: intreport.INT, Flags: intreport.Tracked, Inner: intreport.InnerEthernet, Contents: m.Frame}
			r.Metadata = intreport.Metadata{Bits: intreport.BitPorts | intreport.BitIngressTime, Ingress: uint16(m.In), Egress: uint16(m.Out), IngressTime: uint64(m.Time)}
			send(m.Switch, r)
		})
		each(t, datagram, l.b.fabric.lists.Labels, func(data []byte) {
			var e label.Export
			if _, err := e.Parse(data); err != nil {
				t.Error(err)
				return
			}
			for i := range e.Labels.Len() {
				it := e.Labels.Item(i)
				r := intreport.Report{Type: intreport.INT, Flags: intreport.Congested}
				r.Metadata = intreport.Metadata{
					Bits:    intreport.BitPorts | intreport.BitQueue | intreport.BitEgressTime | intreport.BitHopLatency,
					Ingress: uint16(it.Ingress), Egress: uint16(it.Egress), Queue: it.Queue, QueueDepth: uint32(it.DequeueDepth),
					HopLatency: uint32(it.Latency), EgressTime: uint64(it.Time),
				}
				send(it.Switch, r)
			}
		})
	}
	l.chatter()
	sw := l.goRound()
	l.Start()
	in := l.found(t, sw, "loop")
	if got := evidenceSources(in); !slices.Contains(got, "traces") {
		t.Errorf("the loop is known by %v; want traces among them", got)
	}
	l.only(t, l.name(sw))
	l.b.clean("int")
	l.b.clean("readers")
	st, err := l.b.api.State(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, p := range st.Ports {
		if p.AgeMs >= 0 {
			known++
		}
	}
	if known < 20 {
		t.Errorf("the state of %d ports is known; want most of those that carry something", known)
	}
}
