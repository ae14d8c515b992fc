package serve

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/poll"
)

// floods are reports that would be held for as long as they come. All but some of the
// sources are of nodes of the topology, in their own lists and of this time.
var floods = []struct {
	name  string
	send  func(s *flooded)
	bound func(s *flooded) model.Bytes // of what the heap may hold of it
	lost  string                       // how what is beyond the bound is counted, on a machine of any speed
}{
	{"claims of large tables", (*flooded).bombs, flowShare, "oversized flowset"},
	{"invented sources", (*flooded).inventedSources, flowShare, "unknown reporter"},
	{"ever new flows", (*flooded).newFlows, flowShare, ""},
	{"epochs with bad records", (*flooded).badEpochs, diagnosisShare, "malformed epoch"},
	{"ever new snapshots", (*flooded).newSnapshots, diagnosisShare, "evicted detection"},
	{"references to one detection", (*flooded).references, diagnosisShare, "excess epoch"},
	{"ever new diagnosis requests", (*flooded).newRequests, diagnosisShare, ""},
	{"answers to many requests", (*flooded).answeredRequests, diagnosisShare, ""},
	{"mirrors of ever new packets", (*flooded).newPackets, traceShare, ""},
	{"mirrors of long paths", (*flooded).longPaths, traceShare, ""},
	{"labels of every port", (*flooded).labels, portShare, ""},
}

// Bounds of what the heap holds because of a kind of reports: of its analyses, the
// store's and those that all share.
func flowShare(s *flooded) model.Bytes {
	c := &s.cfg.Controller
	return c.FlowMemory + model.Bytes(c.MaxFlows)*trackedSize + commonShare(s)
}

func diagnosisShare(s *flooded) model.Bytes { return s.cfg.Controller.DiagnosisMemory + commonShare(s) }
func traceShare(s *flooded) model.Bytes     { return s.cfg.Controller.TraceMemory + commonShare(s) }
func portShare(s *flooded) model.Bytes {
	states := coverage.DefaultConfig(s.fabric.routes.Fabric())
	return states.Memory() + commonShare(s)
}

func commonShare(s *flooded) model.Bytes {
	return s.cfg.Store.Hot + core.QueueMemory(s.cfg.Store.Queue) + 16*model.MiB
}

// insiders are the switches that lie. The first one is honest.
func (s *flooded) insiders() []model.NodeID { return s.fabric.routes.Fabric().Switches()[1:] }

func (s *flooded) now() model.Time { return model.TimeOf(time.Now()) }

// host returns one of the hosts.
func (s *flooded) host(n int) model.NodeID {
	hosts := s.fabric.routes.Fabric().Hosts()
	return hosts[n%len(hosts)]
}

// flow returns a flow between hosts, a different one for each number.
func (s *flooded) flow(n int) model.FlowKey {
	f := s.fabric.routes.Fabric()
	from, to := s.host(n), s.host(n+7)
	return model.FlowKey{
		Src: f.Node(from).IPv4, Dst: f.Node(to).IPv4, SrcPort: uint16(n >> 4), DstPort: uint16(1 + n>>20), Proto: model.UDP,
	}
}

// flowsetHeader is of the slot of an instant.
func (s *flooded) flowsetHeader(sw model.NodeID, at model.Time, seed uint64, cells uint32) flowset.Header {
	length := s.cfg.Controller.Slot
	slot := at / model.Time(length)
	return flowset.Header{
		Switch: sw, Seed: seed, Slot: uint32(slot), Start: slot * model.Time(length), Length: length,
		Geometry: flowset.Geometry{FilterHashes: 8, FilterBits: max(cells, 64) * 8 &^ 63, Tables: 3, TableCells: cells},
		Layout:   flowset.Layout{Key: model.KeyLen4, Flows: 2, Packets: 4, Bytes: 4, Ports: 2},
	}
}

// chunk sends the cells from one on of a flowset, empty ones.
func (s *flooded) chunk(h *flowset.Header, first, cells uint32) {
	c := flowset.Chunk{Header: *h, Section: flowset.Cells, First: first, Data: make([]byte, int(cells)*h.Layout.Size())}
	s.report(h.Switch, s.fabric.lists.FlowsetList(h.Switch), c.AppendTo(nil))
}

// flowset sends a whole flowset of some flows, the first one by number.
func (s *flooded) flowset(sw model.NodeID, at model.Time, first, flows int) {
	s.t.Helper()
	h := s.flowsetHeader(sw, at, uint64(first), uint32(flows/2+2))
	var keys []model.FlowKey
	for n := first; n < first+flows; n++ {
		keys = append(keys, s.flow(n))
	}
	for _, b := range flowsetChunks(s.t, h, keys) {
		s.report(sw, s.fabric.lists.FlowsetList(sw), b)
	}
}

// flowsetChunks are those of a switch that has seen one packet of each flow.
func flowsetChunks(t *testing.T, h flowset.Header, flows []model.FlowKey) (chunks [][]byte) {
	t.Helper()
	set, err := sketch.NewSet[sketch.Key4](sketch.Geometry(h.Geometry), h.Seed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range flows {
		key := sketch.Pack4(&flows[i])
		if hash, isNew := set.AddPacket(&key, 100); isNew {
			set.InsertFlow(&key, hash, 1, 2)
		}
	}
	h.Counts = flowset.Counts{Packets: uint64(len(flows)), Bytes: 100 * uint64(len(flows)), Flows: set.Inserted()}
	cells := set.AppendCells(nil)
	split, err := h.Split(1400)
	if err != nil {
		t.Fatal(err)
	}
	for span, ok := split.Next(); ok; span, ok = split.Next() {
		b := h.Open(nil, span)
		if span.Section == flowset.Filter {
			b = set.Filter().AppendBytes(b, span.First, span.Count)
		} else {
			for i := span.First; i < span.First+span.Count; i++ {
				c := &cells[i]
				cell := flowset.Cell{Flows: c.Flows, Packets: c.Packets, Bytes: c.Bytes, InPort: c.In, OutPort: c.Out}
				sketch.PutKey(&cell.Key, &c.Key)
				b = h.Layout.AppendCell(b, &cell)
			}
		}
		chunks = append(chunks, flowset.Seal(b, 0))
	}
	return chunks
}

// honestFlows is the number of the first flow of the honest switch, to port 65.
const honestFlows = 1 << 26

// honest reports flows of the honest switch until the API shows them.
func (s *flooded) honest() {
	s.t.Helper()
	sw := s.fabric.routes.Fabric().Switches()[0]
	from := time.Now()
	s.flows += 10
	eventually(s.t, "honest flows are analysed", func() bool {
		s.flowset(sw, s.now(), honestFlows+s.flows, 10)
		s.settle()
		page, err := s.api.Flows(s.t.Context(), api.FlowsQuery{Range: api.Range{From: from, To: time.Now().Add(time.Second)}, Filter: "udp.dstport == 65"})
		if err != nil {
			s.t.Fatal(err)
		}
		return len(page.Items) > 0
	})
}

// bombs claim tables of up to 50 million cells, and fill some that are allowed as far
// as it takes to have them allocated.
func (s *flooded) bombs() {
	seed := uint64(1)
	for _, sw := range s.insiders() {
		for range race.Less(200, 20) {
			for _, cells := range []uint32{50_000_000 / 3, 1 << 20 / 3, 50_000, 5000} {
				seed++
				h := s.flowsetHeader(sw, s.now(), seed, cells)
				s.chunk(&h, 0, 1)
			}
		}
	}
	for range race.Less(4, 1) {
		for _, sw := range s.insiders()[:4] {
			seed++
			h := s.flowsetHeader(sw, s.now(), seed, 40_000)
			for first := uint32(0); first < 120_000/8; first += 40 {
				s.chunk(&h, first, 40)
			}
		}
	}
}

// inventedSources are of every port and family of a switch with ever new seeds, and of
// nodes that are none.
func (s *flooded) inventedSources() {
	n := race.Less(70_000, 6000)
	for i := range n {
		sw := s.insiders()[i/64%19]
		h := s.flowsetHeader(sw, s.now(), uint64(i)<<20, 10)
		h.Scope = model.PortID(i / 7 % 5)
		if i%2 == 0 {
			h.Layout.Key = model.KeyLen6
		}
		s.chunk(&h, 0, 1)
	}
	for i := range n / 2 {
		s.report(model.NodeID(1000+i), s.fabric.lists.Flowsets.First+dta.ListID(i%20), []byte("a report"))
		delete(s.writers, model.NodeID(1000+i))
	}
}

// newFlows are of several slots, from all switches at once and from one alone.
func (s *flooded) newFlows() {
	n := 0
	for range race.Less(4, 1) {
		for _, sw := range s.insiders() {
			s.flowset(sw, s.now(), n, 500)
			n += 500
		}
	}
	at := s.now()
	for slot := range race.Less(16, 2) {
		s.flowset(s.insiders()[0], at.Add(-time.Duration(slot)*s.cfg.Controller.Slot), n, 6000)
		n += 6000
	}
}

func (s *flooded) epochHeader(sw model.NodeID, ev poll.Event) epoch.Header {
	return epoch.Header{Switch: sw, Event: ev, Snapshot: s.now(), EpochLength: time.Millisecond}
}

func (s *flooded) epoch(c *epoch.Chunk) {
	s.report(c.Switch, s.fabric.lists.Epochs.First, c.AppendTo(nil))
}

// badEpochs are chunks of long reports whose only record is not one.
func (s *flooded) badEpochs() {
	for i := range race.Less(30_000, 6000) {
		c := epoch.Chunk{Header: s.epochHeader(s.insiders()[i/64%19], poll.Event{Host: s.host(i), Number: uint32(i)}), Total: 65535, Index: uint16(i)}
		c.Records = epoch.Port{Port: 1, Priority: 3, Queued: 1}.AppendTo(nil)
		c.Records[2] |= 0xff // reserved bits
		c.Records[5] |= 0xff
		s.epoch(&c)
	}
}

// newSnapshots are good chunks of reports that are never complete.
func (s *flooded) newSnapshots() {
	for i := range race.Less(30_000, 6000) {
		c := epoch.Chunk{Header: s.epochHeader(s.insiders()[i/64%19], poll.Event{Host: s.host(i), Number: uint32(1e6 + i)}), Total: 65535, Index: uint16(i)}
		for p := range model.PortID(4) {
			c.Records = epoch.Port{Port: 1 + p, Priority: 3, Queued: 1}.AppendTo(c.Records)
		}
		s.epoch(&c)
	}
}

// references answer one detection by ever new snapshots.
func (s *flooded) references() {
	for i := range race.Less(30_000, 6000) {
		h := s.epochHeader(s.insiders()[i/64%19], poll.Event{Host: s.host(0), Number: 7})
		h.Flags = epoch.ByReference
		h.Snapshot -= model.Time(i % 50 * 1e6) // some are older than those that are kept
		s.epoch(&epoch.Chunk{Header: h, Total: 1, Records: epoch.PollRef{ReceivedAt: h.Snapshot}.AppendTo(nil)})
	}
}

func (s *flooded) request(ev poll.Event, victim model.FlowKey) {
	p := poll.Poll{Layout: poll.Weft, Flag: poll.Both, HopLimit: 64, Event: ev, Origin: s.now(), Flow: victim}
	s.report(ev.Host, s.fabric.lists.DiagnosisRequests.First, p.AppendTo(nil))
}

// newRequests are of all hosts.
func (s *flooded) newRequests() {
	for i := range race.Less(30_000, 6000) {
		s.request(poll.Event{Host: s.host(i / 32), Number: uint32(2e6 + i)}, s.flow(i))
	}
}

// answeredRequests are answered by switches with paused ports and many flows, so that
// each makes a graph, a drawing and verdicts.
func (s *flooded) answeredRequests() {
	n := 0
	for i := range race.Less(200, 20) {
		ev := poll.Event{Host: s.host(i), Number: uint32(3e6 + i)}
		s.request(ev, s.flow(i))
		for _, sw := range s.insiders()[i%16 : i%16+2] {
			h := s.epochHeader(sw, ev)
			number := h.Number(h.Snapshot)
			const chunks = 8
			for k := range uint16(chunks) {
				c := epoch.Chunk{Header: h, Total: chunks, Index: k}
				if k == 0 {
					for p := range model.PortID(4) {
						c.Records = epoch.Port{Port: 1 + p, Priority: 3, Paused: true, Remaining: time.Millisecond, PauseFrames: 9, Queued: 1e5, Sent: 9}.AppendTo(c.Records)
						c.Records = epoch.PortEpoch{Epoch: number, Port: 1 + p, Priority: 3, Packets: 100, Paused: 50, PauseFrames: 5, Depth: 100, PausedDepth: 5000}.AppendTo(c.Records)
						c.Records = epoch.Meter{Epoch: number, In: 1 + (p+1)%4, Out: 1 + p, Priority: 3, Packets: 100, Bytes: 1e5}.AppendTo(c.Records)
					}
				}
				for len(c.Records) < 1200 {
					key := s.flow(n)
					if len(c.Records) == 0 || k == 0 && n%8 == 0 {
						key = s.flow(i) // the victim
					}
					f := epoch.Flow{Epoch: number, Out: model.PortID(1 + n%4), In: model.PortID(1 + (n+1)%4), Priority: 3, Key: key, Packets: 9, Paused: 5, Bytes: 9000, Depth: 50, PausedDepth: 100}
					c.Records = f.AppendTo(c.Records)
					n++
				}
				s.epoch(&c)
			}
		}
	}
}

func (s *flooded) mirror(sw model.NodeID, port, id uint16, ttl uint8) {
	f := s.fabric.routes.Fabric()
	m := mirror.Mirror{Reasons: mirror.Debug, Switch: sw, In: 1, Out: 2, Time: s.now(), Frame: frame(f, s.host(int(port)), s.host(int(port)+5), port, id)}
	m.Frame[22] = ttl
	m.Length = uint16(len(m.Frame))
	s.report(sw, s.fabric.lists.Mirrors.First, m.AppendTo(nil))
}

func (s *flooded) newPackets() {
	for i := range race.Less(40_000, 10_000) {
		s.mirror(s.insiders()[i/64%19], uint16(i>>12), uint16(i), 60)
	}
}

// longPaths are packets that many switches have seen many times.
func (s *flooded) longPaths() {
	packets := race.Less(300, 50)
	for _, sw := range s.insiders() {
		for i := range packets {
			for hop := range uint8(4) {
				s.mirror(sw, 1000, uint16(i), 60-hop)
			}
		}
	}
}

// labels are of every port, at ever new times, also such that follow a flow.
func (s *flooded) labels() {
	f := s.fabric.routes.Fabric()
	n := 0
	for range 10 {
		for _, sw := range s.insiders() {
			for range race.Less(50, 5) {
				for _, p := range f.Node(sw).Ports {
					n++
					e := label.Export{Switch: sw, Time: s.now(), Key: s.flow(n)}
					item := label.Item{Switch: sw, Ingress: 1, Egress: p.ID, Time: s.now(), Latency: time.Microsecond, EnqueueDepth: 1e6, DequeueDepth: 1e6, Utilisation: 60000}
					s.report(sw, s.fabric.lists.Labels.First, e.AppendWithLabel(nil, item, label.Option{NextHeader: model.UDP, MaxHop: 5}))
				}
			}
		}
	}
}
