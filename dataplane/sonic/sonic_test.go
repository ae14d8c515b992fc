package sonic

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goflow "github.com/netsampler/goflow2/v2/decoders/sflow"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/sflow"
)

// start is what the clocks of switches show at the start of a run.
var start = model.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// sent are the datagrams of a fabric, in order.
type sent struct {
	fabric    *topo.Fabric
	net       *sim.Network
	from      []model.NodeID
	at        []model.Time
	datagrams [][]byte
}

// recording is what record returns, made once: tests only read it.
var recording *sent

// record returns what a small fabric sent.
func record(t testing.TB) *sent {
	if recording == nil {
		recording = newRecord(t)
	}
	return recording
}

// newRecord runs a small fabric that speaks for 2 ms, with a blackhole and a bad cable.
func newRecord(t testing.TB) *sent {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	n, err := sim.New(routes, sim.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	load := traffic.DefaultPoisson()
	load.Duration = time.Millisecond
	flows, err := traffic.Generate(1, traffic.HostsOf(f), load)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []sim.Fault{
		sim.CorruptTable{Switch: f.Switches()[9], Share: 0.3}, sim.Lossy{Port: model.Port{Node: f.Switches()[0], Port: 3}, Share: 0.1, Damaged: true},
	} {
		if err := n.Inject(sim.Injection{Fault: fault}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range f.Switches() {
		n.SetClock(id, sim.Clock{Offset: time.Duration(start)})
	}
	s := &sent{fabric: f, net: n}
	all, err := Speak(n, Config{Interval: 500 * time.Microsecond, Sampling: 16, Seed: 1, Start: start}, Outlets{SFlow: func(at model.Time, from model.NodeID, b []byte) error {
		s.from, s.at, s.datagrams = append(s.from, from), append(s.at, at), append(s.datagrams, bytes.Clone(b))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	n.Run(2 * engine.Millisecond)
	if err := all.Flush(start.Add(2 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTwoDecodersAgree: goflow2 and wire/sflow read every datagram, without an unknown
// part, and get the same samples; counters end at the simulator's totals, and packets
// are of ports that the switch has.
func TestTwoDecodersAgree(t *testing.T) {
	race.LeaveToPlainRun(t)
	s := record(t)
	last := map[model.Port]sflow.IfCounters{}
	broken := map[model.Port]uint32{}
	kinds := map[sflow.Kind]int{}
	var head packet.Packet
	for i, b := range s.datagrams {
		var peer goflow.Packet
		if err := goflow.DecodeMessageVersion(bytes.NewBuffer(b), &peer); err != nil {
			t.Fatalf("datagram %d: goflow2: %v", i, err)
		}
		var r sflow.Reader
		if err := r.Reset(b); err != nil {
			t.Fatalf("datagram %d: %v", i, err)
		}
		node := s.fabric.Node(s.from[i])
		if r.Header.Agent != node.IPv4.Netip() || len(peer.Samples) != int(r.Header.Samples) || len(b) > maxDatagram {
			t.Fatalf("datagram %d of %s: agent %v, %d samples, %d by goflow2, %d bytes", i, node.Name, r.Header.Agent, r.Header.Samples, len(peer.Samples), len(b))
		}
		var one sflow.Sample
		for n := 0; ; n++ {
			more, err := r.Next(&one)
			if err != nil {
				t.Fatalf("datagram %d sample %d: %v", i, n, err)
			}
			if !more {
				break
			}
			kinds[one.Kind]++
			if one.Ignored != 0 {
				t.Fatalf("datagram %d sample %d: %d unknown records", i, n, one.Ignored)
			}
			switch one.Kind {
			case sflow.Count:
				port := portOf(t, node, one.Source.Index)
				if name := s.fabric.Port(port).Name; string(one.Name) != name {
					t.Fatalf("ifIndex %d has the name %q; want %q", one.Source.Index, one.Name, name)
				}
				last[port], broken[port] = one.Port, one.Ethernet.FCSErrors
			case sflow.Flow, sflow.Drop:
				portOf(t, node, one.In.Value)
				if err := head.Parse(one.Packet.Header); err != nil || head.Depth == 0 {
					t.Fatalf("sampled header %x: %v", one.Packet.Header, err)
				}
				if _, known := s.fabric.ByAddr(head.Innermost().Key.Dst); !known {
					t.Fatalf("sampled packet to %v", head.Innermost().Key.Dst)
				}
				if one.Kind == sflow.Drop && one.Reason != sflow.BlackholeRoute {
					t.Fatalf("drop for reason %d; want %d", one.Reason, sflow.BlackholeRoute)
				}
			}
		}
	}
	if kinds[sflow.Count] == 0 || kinds[sflow.Flow] == 0 || kinds[sflow.Drop] == 0 || kinds[sflow.Other] != 0 {
		t.Errorf("samples by kind %v; want counters, packets and drops, and no other", kinds)
	}
	bad := s.fabric.Port(model.Port{Node: s.fabric.Switches()[0], Port: 3}).Peer
	if broken[bad] == 0 {
		t.Error("the bad cable shows no FCS errors")
	}
	for port, c := range last {
		if total := s.net.Port(port).TxData; c.OutOctets > uint64(total) || c.Speed != uint64(s.fabric.Port(port).Rate) {
			t.Errorf("port %v: %+v; want at most the %d bytes that it sent", port, c, total)
		}
	}
}

// portOf returns the port of an ifIndex.
func portOf(t *testing.T, n *topo.Node, index uint32) model.Port {
	t.Helper()
	for i := range n.Ports {
		if IfIndex(n.Ports[i].Name, model.PortID(i+1)) == index {
			return model.Port{Node: n.ID, Port: model.PortID(i + 1)}
		}
	}
	t.Fatalf("%s has no ifIndex %d", n.Name, index)
	return model.Port{}
}

// TestTsharkReadsTheDatagrams: tshark finds sFlow in every one, and nothing malformed.
func TestTsharkReadsTheDatagrams(t *testing.T) {
	race.LeaveToPlainRun(t)
	s := record(t)
	file := filepath.Join(t.TempDir(), "sflow.pcap")
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	const count = 200
	for i, d := range s.datagrams[:count] {
		frame := udpFrame(s.fabric.Node(s.from[i]).IPv4.Netip(), d)
		for _, w := range []uint32{uint32(i), 0, uint32(len(frame)), uint32(len(frame))} {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		b = append(b, frame...)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tshark", "-r", file, "-d", "udp.port==6343,sflow", "-T", "fields", "-e", "sflow_245.version", "-e", "_ws.malformed", "-e", "_ws.expert.severity").Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != count {
		t.Fatalf("tshark read %d frames; want %d", len(lines), count)
	}
	for i, l := range lines {
		if l = strings.TrimSpace(l); l != "5" {
			t.Fatalf("frame %d: version, malformed and severity %q; want 5 alone", i, l)
		}
	}
}

// udpFrame is an Ethernet frame with a datagram.
func udpFrame(src netip.Addr, data []byte) []byte {
	b := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0}
	ip := len(b)
	b = append(b, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0)
	b = append(append(b, src.AsSlice()...), 192, 0, 2, 1)
	binary.BigEndian.PutUint16(b[ip+2:], uint16(20+8+len(data)))
	sum := uint32(0)
	for i := ip; i < ip+20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[ip+10:], ^uint16(sum+sum>>16))
	b = binary.BigEndian.AppendUint16(b, 40000)
	b = binary.BigEndian.AppendUint16(b, 6343)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(data)))
	return append(append(b, 0, 0), data...)
}

// TestSequencesHaveNoGap: datagrams of a switch are numbered one after the other, and
// their uptime is the time since its start.
func TestSequencesHaveNoGap(t *testing.T) {
	race.LeaveToPlainRun(t)
	s := record(t)
	seq := map[model.NodeID]uint32{}
	for i, b := range s.datagrams {
		var r sflow.Reader
		if err := r.Reset(b); err != nil {
			t.Fatal(err)
		}
		if seq[s.from[i]]++; r.Header.Seq != seq[s.from[i]] || r.Header.Uptime != s.at[i].Sub(start).Truncate(time.Millisecond) {
			t.Fatalf("datagram %d: sequence %d at %v; want %d at %v", i, r.Header.Seq, r.Header.Uptime, seq[s.from[i]], s.at[i].Sub(start))
		}
	}
}

// TestSameSeedSameBytes: a run replays exactly.
func TestSameSeedSameBytes(t *testing.T) {
	race.LeaveToPlainRun(t)
	if diff := cmp.Diff(record(t).datagrams, newRecord(t).datagrams); diff != "" {
		t.Errorf("the same run gave other datagrams:\n%.500s", diff)
	}
}

func TestIfIndex(t *testing.T) {
	for name, want := range map[string]uint32{"Ethernet0": 1, "Ethernet124": 125, "swp3": 7, "Ethernet": 7, "Ethernet-1": 7} {
		if got := IfIndex(name, 7); got != want {
			t.Errorf("IfIndex(%q, 7) = %d; want %d", name, got, want)
		}
	}
}

func TestAgentAllocatesNothing(t *testing.T) {
	s := record(t)
	a, err := NewAgent(s.fabric.Node(s.fabric.Switches()[0]), start, func(model.Time, []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	one := portstat.Sample{In: 1, Out: 2, Rate: 256, Bytes: 1000, Has: portstat.HasPriority}
	header, c := make([]byte, HeaderBytes), portstat.Counters{}
	if n := testing.AllocsPerRun(100, func() { a.AddSample(&one, header); a.AddCounters(start, 1, &c) }); n != 0 {
		t.Errorf("a sample and counters allocate %v times", n)
	}
}
