package sflow

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/sflow"
)

// agentOf is the address of a test's agent, and where its datagrams come from.
func agentOf(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }

// fabric has n switches of 4 ports Ethernet0, 4, 8, 12 at 100 Gb/s.
func fabric(t testing.TB, n int, indexes string) *source.Fabric {
	f := &source.Fabric{}
	var list []identity.Switch
	for i := range n {
		port := func(text string) (model.PortID, bool) {
			k, err := strconv.Atoi(strings.TrimPrefix(text, "Ethernet"))
			return model.PortID(k/4 + 1), err == nil && strings.HasPrefix(text, "Ethernet") && k%4 == 0 && k <= 12
		}
		name := func(p model.PortID) string { return fmt.Sprintf("Ethernet%d", 4*(p-1)) }
		m, err := identity.ParseIndexes(indexes, 4, name, port)
		if err != nil {
			t.Fatal(err)
		}
		s := source.Switch{ID: model.NodeID(i), Name: fmt.Sprintf("tor%d", i), Ports: 4, Port: port, Rate: func(model.PortID) model.Rate { return 100e9 }}
		f.Switches = append(f.Switches, s)
		list = append(list, identity.Switch{ID: s.ID, Name: s.Name, Addrs: []netip.Addr{agentOf(i)}, Ports: 4, Port: port, Indexes: m})
	}
	var err error
	if f.Identity, err = identity.New(list); err != nil {
		t.Fatal(err)
	}
	return f
}

// bench receives what a decoder makes.
type bench struct {
	*decoder
	readings []portstat.Reading
	samples  []portstat.Sample
	labels   int
	refused  map[translate.Refusal]int
}

func newBench(t testing.TB, f *source.Fabric) *bench {
	b := &bench{refused: map[translate.Refusal]int{}}
	d, err := (&Config{}).NewDecoder(f, source.Output{
		Reading: func(r *portstat.Reading) { b.readings = append(b.readings, *r) },
		Sample:  func(s *portstat.Sample) { b.samples = append(b.samples, *s) },
		Label:   func(model.Time, []byte) { b.labels++ },
		Refused: func(_ netip.Addr, why translate.Refusal, _ int) { b.refused[why]++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.decoder = d.(*decoder)
	return b
}

// lost returns the count of a reason.
func (b *bench) lost(reason string) uint64 {
	for _, l := range b.Counters().Losses {
		if l.Reason == reason {
			return l.Count
		}
	}
	panic("no reason " + reason)
}

// exporter writes the datagrams of one agent.
type exporter struct {
	agent netip.Addr
	seq   uint32
	start model.Time
}

func (e *exporter) datagram(at model.Time, samples ...sflow.Sample) []byte {
	e.seq++
	b := sflow.Header{Agent: e.agent, Seq: e.seq, Uptime: at.Sub(e.start), Samples: uint32(len(samples))}.AppendTo(nil)
	for i := range samples {
		b = samples[i].AppendTo(b)
	}
	return b
}

func (b *bench) send(at model.Time, e *exporter, samples ...sflow.Sample) bool {
	return b.Decode(at, netip.AddrPortFrom(e.agent, 50000), e.datagram(at, samples...))
}

const second = model.Time(time.Second)

// t0 is long after the agents started.
const t0 = 1_000_000 * second

func newExporter(i int) *exporter { return &exporter{agent: agentOf(i), start: t0 - 1000*second} }

// frame is a TCP packet of a flow from port 1000+n.
func frame(n int) []byte {
	p := packet.TCP{SrcPort: uint16(1000 + n), DstPort: 80}.AppendTo(nil)
	ip := packet.IPv4{Length: uint16(20 + len(p)), TTL: 60, Proto: model.TCP, Src: 0x0a010001, Dst: 0x0a020002}.AppendTo(nil)
	return append(append(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil), ip...), p...)
}

func flowSample(in, out uint32) sflow.Sample {
	return sflow.Sample{
		Kind: sflow.Flow, Rate: 256, Source: sflow.Source{Index: in}, In: sflow.Interface{Value: in}, Out: sflow.Interface{Value: out},
		Has: sflow.HasPacket, Packet: sflow.Packet{Protocol: sflow.HeaderEthernet, Length: 1518, Stripped: 4, Header: frame(1)},
	}
}

// count is a counter sample of Ethernet0 with the ifIndex 1.
func count(seq uint32, octets uint64, packets uint32) sflow.Sample {
	return sflow.Sample{
		Kind: sflow.Count, Seq: seq, Source: sflow.Source{Index: 1}, Has: sflow.HasPort | sflow.HasName, Name: []byte("Ethernet0"),
		Port: sflow.IfCounters{IfIndex: 1, Speed: 100e9, InOctets: octets, OutOctets: 2 * octets, InUnicast: packets, OutUnicast: packets, InDiscards: sflow.Unknown, OutDiscards: 7},
	}
}

func TestFlowSample(t *testing.T) {
	b, e := newBench(t, fabric(t, 2, "sonic")), newExporter(1)
	s := flowSample(1, 9)
	s.Has |= sflow.HasQueue | sflow.HasDepth | sflow.HasDelay
	s.Queue, s.Depth, s.Delay = 3, 40_000, 5*time.Microsecond
	if !b.send(t0, e, s) {
		t.Fatal("the datagram was of no use")
	}
	want := portstat.Sample{
		Node: 1, In: 1, Out: 3, At: t0, Source: portstat.SFlow, Has: portstat.HasPriority | portstat.HasQueueDepth | portstat.HasDelay,
		Flow:     model.FlowKey{Src: model.Addr4(0x0a010001), Dst: model.Addr4(0x0a020002), SrcPort: 1001, DstPort: 80, Proto: model.TCP},
		Priority: 3, Bytes: 1518, Rate: 256, QueueDepth: 40_000, Delay: 5 * time.Microsecond,
	}
	if len(b.samples) != 1 || b.samples[0] != want {
		t.Errorf("samples = %+v; want %+v", b.samples, want)
	}
	if b.labels != 1 {
		t.Errorf("%d labels; want the queue's", b.labels)
	}
}

// TestPool: what a sampler has seen goes beyond 32 bits and over a restart; a datagram that was
// overtaken, an estimate of an agent that sees samples alone, and a sampler of packets that are
// sent have none.
func TestPool(t *testing.T) {
	b, e := newBench(t, fabric(t, 2, "sonic")), newExporter(1)
	for i, tc := range []struct{ pool, want uint64 }{
		{1<<32 - 300, 0}, // nothing to compare with yet
		{1<<32 - 10, 1<<32 - 10},
		{100, 1<<32 + 100},
		{50, 0}, // overtaken
		{100 + 2*256, 0},
		{100 + 2*256 + 100, 1<<32 + 712},
		{5, 0}, // begun anew
	} {
		s := flowSample(1, 9)
		s.Pool = uint32(tc.pool)
		b.samples = nil
		b.send(t0+model.Time(i), e, s)
		if len(b.samples) != 1 || b.samples[0].Pool != tc.want || b.samples[0].Has.All(portstat.HasPool) != (tc.want > 0) {
			t.Errorf("pool %d is %+v; want %d", tc.pool, b.samples, tc.want)
		}
	}
	sent := flowSample(9, 1)
	sent.Source.Index, sent.Pool = 1, 5000
	b.send(t0+100, e, sent)
	s := flowSample(1, 9)
	s.Pool = 6001
	b.samples = nil
	if b.send(t0+101, e, s); len(b.samples) != 1 || b.samples[0].Has.All(portstat.HasPool) {
		t.Errorf("%+v of a sampler that sees what is sent, too; want no pool", b.samples)
	}
}

func TestDropNotification(t *testing.T) {
	b, e := newBench(t, fabric(t, 1, "sonic")), newExporter(0)
	for _, tc := range []struct {
		reason sflow.Reason
		trap   string
		want   portstat.Reason
	}{
		{sflow.NoBufferSpace, "", portstat.NoBuffer},
		{sflow.BlackholeRoute, "", portstat.BlackholeRoute},
		{sflow.NetUnknown, "", portstat.NoRoute},
		{sflow.TTLExceeded, "", portstat.TTLExpired},
		{sflow.IPHeaderCorrupted, "", portstat.BadHeader},
		{sflow.UnknownReason, "early_drop", portstat.NoBuffer},
		{sflow.UnknownReason, "of a vendor", portstat.UnknownReason},
		{99999, "", portstat.UnknownReason},
	} {
		b.samples = nil
		s := flowSample(5, 0)
		s.Kind, s.Rate, s.Reason, s.Trap, s.Has = sflow.Drop, 0, tc.reason, []byte(tc.trap), s.Has|sflow.HasTrap
		b.send(t0, e, s)
		if len(b.samples) != 1 || b.samples[0].Drop != tc.want || !b.samples[0].Has.All(portstat.HasDrop) || b.samples[0].In != 2 || b.samples[0].Rate != 1 {
			t.Errorf("reason %d %q: %+v; want a drop of port 2 because of %v", tc.reason, tc.trap, b.samples, tc.want)
		}
	}
}

// TestLearnsNames: samples are of use once the agent has named its interfaces, as
// hsflowd and Open vSwitch do with their counters.
func TestLearnsNames(t *testing.T) {
	b, e := newBench(t, fabric(t, 1, "learned")), newExporter(0)
	b.send(t0, e, flowSample(1, 0))
	if b.lost("unknown port") != 1 || len(b.samples) != 0 {
		t.Errorf("%d samples, %d of unknown ports; want none and 1", len(b.samples), b.lost("unknown port"))
	}
	mgmt := count(1, 0, 0)
	mgmt.Source.Index, mgmt.Name = 2, []byte("eth0")
	b.send(t0, e, count(1, 0, 0), mgmt, flowSample(1, 0), flowSample(2, 0), flowSample(1, 2))
	if len(b.samples) != 2 || b.samples[0].In != 1 || b.samples[1].Out != 0 || b.lost("other interface") != 2 {
		t.Errorf("samples %+v, %d of other interfaces; want two of port 1, and two of eth0", b.samples, b.lost("other interface"))
	}
}

func TestReadings(t *testing.T) {
	b, e := newBench(t, fabric(t, 1, "learned")), newExporter(0)
	b.send(t0, e, count(1, 1000, 1<<32-5))
	b.send(t0+20*second, e, count(2, 51_000, 45)) // packets wrapped
	if len(b.readings) != 1 {
		t.Fatalf("readings %+v; want one", b.readings)
	}
	r := &b.readings[0]
	if r.Interval() != 20*time.Second || r.To != t0+20*second || r.RxBytes != 50_000 || r.TxBytes != 100_000 || r.RxPackets != 50 || r.Port != (model.Port{Node: 0, Port: 1}) {
		t.Errorf("reading %+v; want 50,000 bytes and 50 packets in 20 s", r)
	}
	if want := portstat.HasBytes | portstat.HasPackets | portstat.HasErrors; r.Has != want {
		t.Errorf("fields %b; want %b: the agent does not count discards", r.Has, want)
	}
}

// TestCounterFaults: no restart, cleared counter or impossible value becomes a reading.
func TestCounterFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		restart bool
		next    sflow.Sample
		reason  string
	}{
		"restart":                {restart: true, next: count(1, 500, 5), reason: "reset"},
		"sequence begins again":  {next: count(1, 5_000_000, 5_000), reason: "reset"},
		"octets cleared":         {next: count(102, 10, 1), reason: "reset"},
		"petabyte in 20 seconds": {next: count(102, 1<<50, 2000), reason: "implausible"},
		"packets jump":           {next: count(102, 2_000_000, 1<<32-1-1<<30), reason: "implausible"},
	} {
		b, e := newBench(t, fabric(t, 1, "learned")), newExporter(0)
		b.send(t0, e, count(100, 1_000_000, 1000))
		b.send(t0+second, e, count(101, 1_001_000, 1001))
		if len(b.readings) != 1 {
			t.Fatalf("%s: %d readings before the fault; want 1", name, len(b.readings))
		}
		if tc.restart {
			*e = exporter{agent: e.agent, start: t0 + 15*second}
		}
		b.send(t0+2*second+second/2, e, tc.next)
		if len(b.readings) != 1 || b.lost(tc.reason) != 1 {
			t.Errorf("%s: readings %+v, %d %s; want no new reading, and 1", name, b.readings[1:], b.lost(tc.reason), tc.reason)
		}
		after := tc.next
		after.Seq++
		after.Port.InOctets += 77
		b.send(t0+4*second, e, after)
		if len(b.readings) != 2 || b.readings[1].RxBytes != 77 || b.readings[1].RxPackets != 0 {
			t.Errorf("%s: readings %+v; want the next one with 77 bytes", name, b.readings[1:])
		}
	}
}

func TestMissingDatagrams(t *testing.T) {
	b, e := newBench(t, fabric(t, 1, "sonic")), newExporter(0)
	b.send(t0, e, flowSample(1, 5))
	e.seq += 3
	b.send(t0+second, e, flowSample(1, 5))
	lost := flowSample(1, 5)
	lost.Lost = 12
	b.send(t0+2*second, e, lost)
	if b.lost("missing") != 3 || b.lost("lost by agent") != 12 {
		t.Errorf("%d missing, %d lost by the agent; want 3 and 12", b.lost("missing"), b.lost("lost by agent"))
	}
	// A stranger's numbers do not move those of a switch.
	other := *e
	other.seq = 900_000
	b.Decode(t0+3*second, netip.MustParseAddrPort("192.0.2.66:1"), other.datagram(t0+3*second))
	b.send(t0+4*second, e, flowSample(1, 5))
	if b.lost("missing") != 3 {
		t.Errorf("%d missing after a stranger; want 3", b.lost("missing"))
	}
}

func TestClockJump(t *testing.T) {
	b, e := newBench(t, fabric(t, 1, "learned")), newExporter(0)
	b.send(t0, e, count(1, 0, 0))
	e.start -= 3600 * second // its uptime jumps ahead by an hour
	b.send(t0+second, e, count(2, 1000, 1))
	if len(b.readings) != 1 || b.lost("clock") != 1 || b.readings[0].Interval() > 3*time.Second {
		t.Errorf("readings %+v, %d clock jumps; want one reading of about a second", b.readings, b.lost("clock"))
	}
}

// TestAMillionAgents: who is not in the topology costs a counter, and no memory.
func TestAMillionAgents(t *testing.T) {
	b := newBench(t, fabric(t, 2, "sonic"))
	for i := range 1_000_000 {
		a := netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
		e := exporter{agent: a}
		if b.Decode(t0, netip.AddrPortFrom(a, 1), e.datagram(t0)) {
			t.Fatal("a stranger's datagram was of use")
		}
	}
	if b.lost("unknown agent") != 1_000_000 || b.refused[translate.UnknownReporter] != 1_000_000 || len(b.agents) != 0 || len(b.ports) != 0 {
		t.Errorf("%d unknown agents, %d agents and %d ports held; want 1,000,000, none, none", b.lost("unknown agent"), len(b.agents), len(b.ports))
	}
	// A known switch that invents sub-agents fills its own share.
	for i := range 1000 {
		h := sflow.Header{Agent: agentOf(0), SubAgent: uint32(i), Seq: 1}
		b.Decode(t0, netip.AddrPortFrom(agentOf(0), 1), h.AppendTo(nil))
	}
	if len(b.agents) != maxSubAgents || b.lost("too many sub-agents") != 1000-maxSubAgents {
		t.Errorf("%d sub-agents held; want %d", len(b.agents), maxSubAgents)
	}
	if !b.send(t0, newExporter(1), flowSample(1, 5)) {
		t.Error("the other switch is not heard any more")
	}
}

func TestDeniedAddress(t *testing.T) {
	f := fabric(t, 1, "sonic")
	f.Switches[0].Prefixes = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	b, e := newBench(t, f), newExporter(0)
	if b.Decode(t0, netip.MustParseAddrPort("192.0.2.1:9"), e.datagram(t0, flowSample(1, 5))) || b.lost("address not allowed") != 1 {
		t.Errorf("%d denied; want the datagram from elsewhere", b.lost("address not allowed"))
	}
}

// FuzzDecode: no datagram panics, and every sample is accounted for.
func FuzzDecode(f *testing.F) {
	e := newExporter(0)
	f.Add(e.datagram(t0, count(1, 1000, 1), flowSample(1, 5)), e.datagram(t0+second, count(2, 2000, 2)))
	fab := fabric(f, 1, "sonic")
	f.Fuzz(func(t *testing.T, first, next []byte) {
		b := newBench(t, fab)
		for i, d := range [][]byte{first, next} {
			b.Decode(t0+model.Time(i)*second, netip.AddrPortFrom(agentOf(0), 1), d)
		}
		s := &b.stats
		if sum := s.used + s.unknownPort + s.otherInterface + s.otherFormat + b.lost("late") + b.lost("implausible") + b.trackedResets(); sum != s.samples {
			t.Fatalf("%d samples, %d accounted for: %+v", s.samples, sum, b.Counters())
		}
		for i := range b.readings {
			if b.readings[i].Interval() <= 0 {
				t.Fatalf("reading without an interval: %+v", b.readings[i])
			}
		}
	})
}

// trackedResets is how many counter samples the tracker found reset.
func (b *bench) trackedResets() uint64 { return b.lost("reset") - b.stats.resets }

func TestDecodeAllocatesNothing(t *testing.T) {
	b := newBench(t, fabric(t, 1, "sonic"))
	b.out = source.Output{Reading: func(*portstat.Reading) {}, Sample: func(*portstat.Sample) {}}
	e := newExporter(0)
	from := netip.AddrPortFrom(e.agent, 1)
	data := e.datagram(t0, flowSample(1, 5), flowSample(5, 9))
	b.Decode(t0, from, data)
	if n := testing.AllocsPerRun(100, func() { b.Decode(t0, from, data) }); n != 0 {
		t.Errorf("a datagram allocates %v times", n)
	}
}
