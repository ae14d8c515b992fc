package live

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/livestate"
	"github.com/weft-telemetry/weft/inswitch/postcard"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/dta"
)

// postcardScenario has an incast, so that packets wait, and TCP over IPv6.
const postcardScenario = `
name: postcards
about: Postcards of an incast and of TCP.
duration: 3ms
topology: {generate: {kind: fat-tree, k: 4, rate: 10Gb/s}}
fabric: {mtu: 1024}
traffic:
  - {kind: incast, receivers: h12, senders: [h0, h1, h5, h9], fanin: 4, bytes: 600KB}
  - {kind: incast, receivers: h13, senders: [h2, h7], fanin: 2, bytes: 600KB, transport: tcp, ipv6: true}
telemetry:
  - {kind: label, interval: 20us}
  - {kind: postcard, flows: 1, packets: 64, rate: 1000000, burst: 1000}
`

// passage is a packet at a switch.
type passage struct {
	sw      model.NodeID
	latency time.Duration
	queue   model.Bytes
}

// packetID identifies a packet of a flow, other than its retransmissions.
type packetID struct {
	flow model.FlowKey
	ipid uint16
	seq  int64
	kind sim.Kind
}

// pathTruth records where packets went, and how long they waited there.
type pathTruth struct {
	sim.NopObserver
	enqueued map[*sim.Packet]struct {
		at    engine.Time
		ahead model.Bytes
	}
	passed map[packetID][]passage
}

func (o *pathTruth) Enqueued(now engine.Time, p *sim.Packet, out *sim.Port) {
	o.enqueued[p] = struct {
		at    engine.Time
		ahead model.Bytes
	}{now, model.Bytes(out.QueueBytes(p.Priority))}
}

func (o *pathTruth) Dequeued(now engine.Time, p *sim.Packet, out *sim.Port) {
	in := o.enqueued[p]
	id := packetID{p.Key, p.IPID, p.Seq, p.Kind}
	o.passed[id] = append(o.passed[id], passage{out.Node, (now - in.at).Duration(), in.ahead})
}

// postcardRun runs the scenario, without the reports of one switch if it is not 0.
func postcardRun(t *testing.T, silent func(f *scenario.Session) model.NodeID) (*livestate.Memory, *scenario.Session, *pathTruth) {
	t.Helper()
	s, err := scenario.Parse("postcards.yaml", []byte(postcardScenario))
	if err != nil {
		t.Fatal(err)
	}
	var collector *core.InProcessCollector
	var drop model.NodeID
	session, err := scenario.Open(s, func(at model.Time, from model.NodeID, datagram []byte) {
		if from != drop {
			collector.Receive(at, reporterAddr(from), datagram)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if silent != nil {
		drop = silent(session)
	}
	f := session.Network.Fabric()
	plan, err := livestate.PlanFor(f, livestate.Sizes{})
	if err != nil {
		t.Fatal(err)
	}
	lists := list.Config{Layout: list.Weft, Batch: 16, Classes: []list.Class{{Lists: 4, Entry: maxReport, Capacity: 1024, Sized: true}}}
	if collector, err = core.NewInProcessCollector(lists, plan, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { collector.Close() })
	memory, err := livestate.New(f, time.Unix(0, 0), collector.Memory())
	if err != nil {
		t.Fatal(err)
	}
	truth := &pathTruth{passed: map[packetID][]passage{}, enqueued: map[*sim.Packet]struct {
		at    engine.Time
		ahead model.Bytes
	}{}}
	session.Network.Observe(truth)
	session.Network.Run(engine.Of(30 * time.Millisecond))
	session.Settle()
	if err := collector.Drain(model.Time(30*time.Millisecond), func(dta.ListID, []byte) {}); err != nil {
		t.Fatal(err)
	}
	return memory, session, truth
}

// TestPostcardsEqualTheSimulatorsPaths: every path that is read is that of a packet of
// its flow, hop by hop, with its latencies and queues.
func TestPostcardsEqualTheSimulatorsPaths(t *testing.T) {
	memory, session, truth := postcardRun(t, nil)
	flows := map[model.FlowKey][][]passage{}
	for id, path := range truth.passed {
		flows[id.flow] = append(flows[id.flow], path)
	}
	read, complete, mixed, waited := 0, 0, 0, false
	for flow, paths := range flows {
		list, met, err := memory.Postcards(&flow, time.Unix(0, int64(30*time.Millisecond)))
		if err != nil {
			t.Fatal(err)
		}
		mixed += met
		for i := range list {
			read++
			if list[i].Complete {
				complete++
			}
			if !slices.ContainsFunc(paths, func(p []passage) bool { return samePassages(&list[i], p) }) {
				t.Errorf("%v: path %+v is that of no packet", flow, list[i])
			}
			for _, h := range list[i].Hops {
				waited = waited || h.Latency > 10*time.Microsecond && h.Queue > 10_000
			}
		}
	}
	var st postcard.Stats
	for _, programs := range session.Programs {
		for _, p := range programs {
			if p, ok := p.(*postcard.Program); ok {
				one := p.Stats()
				st.Chosen, st.Sent = st.Chosen+one.Chosen, st.Sent+one.Sent
			}
		}
	}
	if complete < 5*len(flows) || complete < read*9/10 || !waited || st.Sent != st.Chosen || mixed > read/10 {
		t.Errorf("%d paths of %d flows, %d complete, %d mixed, long waits %v, %d postcards of %d; want several of each flow, nearly all complete, and all postcards",
			read, len(flows), complete, mixed, waited, st.Sent, st.Chosen)
	}
}

// samePassages compares a path with what the simulator saw, within the precision of
// postcards. A path that is not complete may lack hops.
func samePassages(got *api.PostcardPath, path []passage) bool {
	near := func(a, b int64) bool { return math.Abs(float64(a-b)) <= max(float64(b)/255, 1) }
	if len(got.Hops) > len(path) || got.Complete && len(got.Hops) < len(path) {
		return false
	}
	for i, h := range got.Hops {
		p := &path[i]
		if !h.Known && !got.Complete {
			continue
		}
		if !h.Known || h.Switch != p.sw || !near(int64(h.Latency), int64(p.latency)) || !near(int64(h.Queue), int64(p.queue)) {
			return false
		}
	}
	return true
}

// TestMissingHopsAreShown: without the reports of one switch, its hop is missing in
// the paths through it, and no other.
func TestMissingHopsAreShown(t *testing.T) {
	var silent model.NodeID
	memory, session, truth := postcardRun(t, func(s *scenario.Session) model.NodeID {
		f := s.Network.Fabric()
		silent = f.Node(f.Hosts()[12]).Ports[0].Peer.Node // the last hop to h12, the first from it
		return silent
	})
	first, last, whole := 0, 0, 0
	asked := map[model.FlowKey]bool{}
	for id, path := range truth.passed {
		if asked[id.flow] { // all packets of a flow take one path
			continue
		}
		asked[id.flow] = true
		list, _, err := memory.Postcards(&id.flow, time.Unix(0, int64(30*time.Millisecond)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			for hop, h := range list[i].Hops {
				if h.Known != (path[hop].sw != silent) || h.Known && h.Switch != path[hop].sw {
					t.Fatalf("%v: hop %d of %+v; want %v, and %d missing", id.flow, hop, list[i], path, silent)
				}
			}
			switch {
			case path[0].sw == silent:
				first++
			case path[len(path)-1].sw == silent:
				if last++; len(list[i].Hops) != len(path)-1 {
					t.Fatalf("%v: %d hops; want all but the last of %d", id.flow, len(list[i].Hops), len(path))
				}
			default:
				whole++
			}
			if list[i].Complete == slices.ContainsFunc(path, func(p passage) bool { return p.sw == silent }) {
				t.Fatalf("%v: path %+v is complete: %v", id.flow, list[i], list[i].Complete)
			}
		}
	}
	if first == 0 || last == 0 {
		t.Errorf("%d paths begin at the silent switch %s, %d end there, %d others; want some of the first two", first, session.Network.Fabric().Node(silent).Name, last, whole)
	}
}

// TestMarkedPacketsHavePostcards: without a sample, the packets of a host that marks
// them have postcards, and no others.
func TestMarkedPacketsHavePostcards(t *testing.T) {
	s, err := scenario.Parse("marked.yaml", []byte(`
name: marked
about: Postcards of marked packets alone.
duration: 2ms
topology: {generate: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 3}}
traffic:
  - {kind: persistent, pairs: [h0>h3, h1>h4], rate: 1Gb/s}
telemetry:
  - {kind: postcard, flows: 0, marked: 1}
management: {delay: 2us, jitter: 0}
`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Start(t.Context(), s, StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Client().SetMark(t.Context(), api.MarkRequest{Host: "h0", DurationMs: 10}); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := r.sim.fabric
	for from, want := range map[int]bool{0: true, 1: false} {
		src, dst := f.Node(f.Hosts()[from]), f.Node(f.Hosts()[from+3])
		key := model.FlowKey{Src: src.IPv4, Dst: dst.IPv4, SrcPort: 10000, DstPort: 4791, Proto: model.UDP}
		got, err := r.Client().FlowPostcards(t.Context(), key, 64)
		if err != nil || (got.Complete > 0) != want || !want && got.Found > 0 {
			t.Errorf("postcards of %v: %d found, %d complete, %v; want some: %v", key, got.Found, got.Complete, err, want)
		}
	}
}
