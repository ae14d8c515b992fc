package serve

import (
	"encoding/binary"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/keyed"
	"github.com/weft-telemetry/weft/wire/packet"
)

// keyedScenario is the lab's fabric, whose switches send keyed reports, too.
var keyedScenario = strings.Replace(labScenario, "management:", `  - {kind: port-state, period: 5ms}
  - {kind: host-counters, period: 5ms}
  - {kind: postcard, flows: 1, packets: 4}
management:`, 1)

// TestSwitchesWriteTheStateOfTheirPorts: every switch of a fabric writes its ports'
// states over a socket, and the API reads them from memory.
func TestSwitchesWriteTheStateOfTheirPorts(t *testing.T) {
	b := start(t, testConfig(t))
	l := newLabOf(t, b, keyedScenario)
	l.chatter()
	l.Start()
	c := b.client("")
	host := b.Fabric().Hosts()[0]
	tor := b.Fabric().Node(host).Ports[0].Peer
	last := uint64(0)
	eventually(t, "states of all ports, and bytes that grow", func() bool {
		now, err := c.PortsNow(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		one, err := c.PortNow(t.Context(), b.Fabric().Node(tor.Node).Name, b.Fabric().Port(tor).Name)
		grown := err == nil && last > 0 && one.SentBytes > last
		if err == nil && last == 0 {
			last = one.SentBytes
		}
		return len(now.Ports) == 80 && len(now.Missing) == 0 && grown && one.LoadBps > 0
	})
}

// TestSwitchesCountForTheirHosts: switches evict the counters of their hosts over a
// socket, and the API adds up what hosts send.
func TestSwitchesCountForTheirHosts(t *testing.T) {
	b := start(t, testConfig(t))
	l := newLabOf(t, b, keyedScenario)
	l.chatter()
	l.Start()
	c := b.client("")
	eventually(t, "bytes that hosts sent and received", func() bool {
		var sum api.HostCount
		for _, id := range b.Fabric().Hosts() {
			h, err := c.HostCounters(t.Context(), b.Fabric().Node(id).Name, -1)
			if err != nil {
				t.Fatal(err)
			}
			sum.SentBytes += h.Total.SentBytes
			sum.ReceivedPackets += h.Total.ReceivedPackets
		}
		return sum.SentBytes > 10_000 && sum.ReceivedPackets > 100
	})
}

func countReport(sw model.NodeID, host model.Addr, delta uint64) dta.Report {
	return dta.Report{
		Primitive: dta.KeyIncrement, Redundancy: keyed.Copies, Delta: delta,
		Key: keyed.HostKey{Switch: sw, Host: host, Class: 3, Metric: keyed.SentBytes}.AppendTo(nil),
	}
}

// TestForgedCountersChangeNothing: a switch counts for its own hosts, and each report
// counts once.
func TestForgedCountersChangeNothing(t *testing.T) {
	b := start(t, testConfig(t))
	c := b.client("")
	f := b.Fabric()
	host, stranger := f.Node(f.Hosts()[0]), f.Node(f.Hosts()[len(f.Hosts())-1])
	tor, other := host.Ports[0].Peer.Node, stranger.Ports[0].Peer.Node
	sent := func(n *topo.Node) uint64 {
		h, err := c.HostCounters(t.Context(), n.Name, 3)
		if err != nil {
			t.Fatal(err)
		}
		return h.Total.SentBytes
	}
	owner, thief := newKeyedSender(t, b, tor, nil), newKeyedSender(t, b, other, nil)
	owner.send(countReport(tor, host.IPv4, 1000), countReport(tor, host.IPv4, 500))
	thief.send(countReport(tor, host.IPv4, 666), countReport(other, host.IPv4, 667), countReport(other, stranger.IPv4, 1<<63),
		countReport(other, stranger.IPv4, 70))
	newKeyedSender(t, b, host.ID, nil).send(countReport(tor, host.IPv4, 668))
	eventually(t, "what is the switches' own, and four refusals", func() bool {
		return sent(host) == 1500 && sent(stranger) == 70 && refusedKeys(b) == 4
	})
}

// TestSwitchesSendPostcards: switches send the postcards of packets over sockets, and
// the API has their path.
func TestSwitchesSendPostcards(t *testing.T) {
	b := start(t, testConfig(t))
	l := newLabOf(t, b, keyedScenario)
	l.chatter()
	l.Start()
	c := b.client("")
	f := b.Fabric()
	eventually(t, "a whole path of a flow", func() bool {
		page, err := c.Flows(t.Context(), api.FlowsQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Items {
			key := page.Items[i].Flow
			got, err := c.FlowPostcards(t.Context(), key, 64)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got.Samples {
				s := &got.Samples[i]
				if !s.Complete {
					continue
				}
				src, _ := f.ByAddr(key.Src)
				if first := f.Node(f.Node(src).Ports[0].Peer.Node).Name; s.Hops[0].Switch != first || s.AgeMs < -1000 || s.AgeMs > 60_000 {
					t.Fatalf("path %+v of %v; want it to begin at %s, of the last minute", s, key, first)
				}
				return true
			}
		}
		return false
	})
}

// TestForgedPostcards: a switch sends postcards of itself, and of no other.
func TestForgedPostcards(t *testing.T) {
	b := start(t, testConfig(t))
	c := b.client("")
	f := b.Fabric()
	src, dst := f.Node(f.Hosts()[0]), f.Node(f.Hosts()[1]) // of one rack
	tor, other := src.Ports[0].Peer.Node, f.Node(f.Hosts()[len(f.Hosts())-1]).Ports[0].Peer.Node
	key := model.FlowKey{Src: src.IPv4, Dst: dst.IPv4, SrcPort: 5000, DstPort: 80, Proto: model.TCP}
	cards := func(sw model.NodeID, latency time.Duration) (list []dta.Report) {
		card := keyed.Postcard{Switch: sw, Latency: latency, Time: model.TimeOf(time.Now())}
		k := keyed.NewPostcardKey(&key, 5)
		for i, w := range card.Words() {
			k.Part = keyed.Part(i)
			list = append(list, dta.Report{
				Primitive: dta.Postcarding, Redundancy: keyed.PostcardCopies, Hop: 0, Path: 1,
				Key: k.AppendTo(nil), Data: binary.BigEndian.AppendUint32(nil, w),
			})
		}
		return list
	}
	newKeyedSender(t, b, tor, nil).send(cards(tor, 100)...)
	newKeyedSender(t, b, other, nil).send(cards(tor, 66)...)
	newKeyedSender(t, b, src.ID, nil).send(cards(src.ID, 67)...)
	eventually(t, "the switch's own postcard, and the refusals of eight words", func() bool {
		got, err := c.FlowPostcards(t.Context(), key, 64)
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Samples) == 1 && got.Samples[0].Complete && got.Samples[0].LatencyNs == 100 &&
			got.Samples[0].Hops[0].Switch == f.Node(tor).Name && refusedKeys(b) == 8
	})
}

// refusedKeys is how many keyed reports were refused for their content.
func refusedKeys(b *bed) (n uint64) {
	h := b.Health()
	for i := range h.Stages {
		for _, l := range h.Stages[i].Losses {
			switch l.Reason {
			case "another switch in the payload", "unknown switch or port in the payload", "malformed key", "host of another switch in the payload":
				n += l.Count
			}
		}
	}
	return n
}

// keyedSender sends keyed reports of one reporter from a socket of its own.
type keyedSender struct {
	t    *testing.T
	conn net.Conn
	w    dta.Writer
}

func newKeyedSender(t *testing.T, b *bed, reporter model.NodeID, key *dta.MAC) *keyedSender {
	t.Helper()
	conn, err := net.Dial("udp", b.Reports().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &keyedSender{t, conn, dta.NewSignedWriter(reporter, 1, key, model.TimeOf(time.Now()))}
}

func (s *keyedSender) send(reports ...dta.Report) {
	s.t.Helper()
	s.w.Begin(make([]byte, MaxReport))
	for i := range reports {
		if err := s.w.AddReport(&reports[i]); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := s.conn.Write(s.w.FinishAt(model.TimeOf(time.Now()))); err != nil {
		s.t.Fatal(err)
	}
}

func stateReport(p model.Port, queue model.Bytes) dta.Report {
	return dta.Report{
		Primitive: dta.KeyWrite, Redundancy: keyed.Copies, Key: keyed.PortKey{Port: p}.AppendTo(nil),
		Data: keyed.PortState{Time: model.TimeOf(time.Now()), Queue: queue}.AppendTo(nil),
	}
}

// TestForgedKeysChangeNothing: a switch writes its own keys, and no others.
func TestForgedKeysChangeNothing(t *testing.T) {
	b := start(t, testConfig(t))
	c := b.client("")
	switches := b.Fabric().Switches()
	mine, other := model.Port{Node: switches[0], Port: 1}, model.Port{Node: switches[1], Port: 1}
	queueOf := func(p model.Port) int64 {
		now, err := c.PortNow(t.Context(), b.Fabric().Node(p.Node).Name, "1")
		if err != nil {
			return -1
		}
		return now.QueueBytes
	}
	owner, thief := newKeyedSender(t, b, mine.Node, nil), newKeyedSender(t, b, other.Node, nil)
	owner.send(stateReport(mine, 1000))
	eventually(t, "the owner's state", func() bool { return queueOf(mine) == 1000 })

	host := newKeyedSender(t, b, b.Fabric().Hosts()[0], nil)
	host.send(stateReport(mine, 666))
	torn := stateReport(mine, 666)
	torn.Data = torn.Data[:20]
	// A run of equal reports, of which only the last is the thief's own.
	thief.send(torn, stateReport(model.Port{Node: other.Node, Port: 99}, 666), stateReport(mine, 666), stateReport(mine, 667), stateReport(other, 2000))
	eventually(t, "the thief's own state", func() bool { return queueOf(other) == 2000 })
	eventually(t, "five refusals", func() bool { return refusedKeys(b) == 5 })
	if got := queueOf(mine); got != 1000 {
		t.Errorf("queue of %v is %d after forged reports; want 1000", mine, got)
	}
}

// TestSignedSwitchesWriteKeys: with a key file a state needs the switch's MAC.
func TestSignedSwitchesWriteKeys(t *testing.T) {
	cfg := testConfig(t)
	b0, err := readFabric(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := b0.doc.Fabric
	at := model.Port{Node: f.Switches()[0], Port: 1}
	name := f.Node(at.Node).Name
	path, secret := writeTestKey(t, name)
	cfg.DTA().Keys = path
	b := start(t, cfg)
	c := b.client("")
	newKeyedSender(t, b, at.Node, nil).send(stateReport(at, 666))
	newKeyedSender(t, b, at.Node, dta.NewMAC(secret.ID, make([]byte, 32))).send(stateReport(at, 667))
	newKeyedSender(t, b, at.Node, dta.NewMAC(secret.ID, secret.Secret[:])).send(stateReport(at, 1000))
	eventually(t, "the signed state", func() bool {
		now, err := c.PortNow(t.Context(), name, "1")
		if err == nil && now.QueueBytes != 1000 {
			t.Fatalf("queue %d of a report without the switch's MAC", now.QueueBytes)
		}
		return err == nil
	})
}

func writeTestKey(t *testing.T, name string) (path string, key keyfile.Key) {
	t.Helper()
	keys := keyfile.Generate([]string{name}, nil)
	path = filepath.Join(t.TempDir(), "keys")
	if err := keys.Write(path); err != nil {
		t.Fatal(err)
	}
	return path, keys.Keys(name)[0]
}

// TestPostcardsOfINTReports: INT reports of other vendors' switches are postcards too. Each
// switch of a path reports its own hop, and the API has the whole by the flow's key.
func TestPostcardsOfINTReports(t *testing.T) {
	b := start(t, testConfig(t))
	c, f := b.client(""), b.Fabric()
	src, dst := f.Node(f.Hosts()[0]), f.Node(f.Hosts()[2]) // of one pod, through an aggregation switch
	first, last := src.Ports[0].Peer.Node, dst.Ports[0].Peer.Node
	var middle model.NodeID
	for _, p := range f.Node(first).Ports {
		if f.Node(p.Peer.Node).Role.IsSwitch() {
			middle = p.Peer.Node
			break
		}
	}
	flow := model.FlowKey{Src: src.IPv4, Dst: dst.IPv4, SrcPort: 5000, DstPort: 80, Proto: model.UDP}
	conn, err := net.Dial("udp", b.SourceAddr("int").String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for hop, sw := range []model.NodeID{first, middle, last} {
		ip := packet.IPv4{ID: 7, Length: 28, TTL: uint8(63 - hop), Proto: model.UDP, Src: flow.Src.V4(), Dst: flow.Dst.V4()}
		ip.Checksum = ip.Sum()
		frame := packet.UDP{SrcPort: flow.SrcPort, DstPort: flow.DstPort, Length: 8}.AppendTo(ip.AppendTo(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)))
		r := intreport.Report{Type: intreport.INT, Flags: intreport.Tracked, Inner: intreport.InnerEthernet, Contents: frame}
		r.Metadata = intreport.Metadata{
			Bits: intreport.BitPorts | intreport.BitQueue | intreport.BitHopLatency, Ingress: 1, Egress: 2,
			QueueDepth: 4096, HopLatency: uint32(1000 * (hop + 1)),
		}
		if _, err := conn.Write(r.AppendTo(intreport.Group{Node: uint32(sw)}.AppendTo(nil))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the path of three hops", func() bool {
		got, err := c.FlowPostcards(t.Context(), flow, 64)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Samples) != 1 || !got.Samples[0].Complete {
			return false
		}
		s := &got.Samples[0]
		if len(s.Hops) != 3 || s.Hops[1].Switch != f.Node(middle).Name || s.LatencyNs < 5900 || s.LatencyNs > 6100 {
			t.Fatalf("path %+v; want three hops through %s, about 6 µs in all", s, f.Node(middle).Name)
		}
		return true
	})
}
