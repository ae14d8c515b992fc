package control

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/poll"
)

// liar makes reports that parse and are not true: of switches, ports, times, counts
// and lists that may be any. How often a value is true is up to lies, 0 to 255.
type liar struct {
	*rand.Rand
	lies   uint8
	fabric *topo.Fabric
	plan   *ListPlan
	now    model.Time
}

func (l *liar) lie() bool { return l.IntN(256) < int(l.lies) }

// number is a count: often small, often at a limit.
func (l *liar) number() uint64 {
	if !l.lie() {
		return uint64(l.IntN(1000))
	}
	return []uint64{0, 1, 1 << 15, 1<<16 - 1, 1 << 31, math.MaxUint32, 1 << 62, math.MaxInt64, 1 << 63, math.MaxUint64, l.Uint64()}[l.IntN(11)]
}

func (l *liar) node(of []model.NodeID) model.NodeID {
	if !l.lie() {
		return of[l.IntN(len(of))]
	}
	return []model.NodeID{0, model.NodeID(len(l.fabric.Nodes())), 5000, math.MaxUint32, l.fabric.Hosts()[0], l.fabric.Switches()[0]}[l.IntN(6)]
}

func (l *liar) sw() model.NodeID { return l.node(l.fabric.Switches()) }

func (l *liar) port() model.PortID {
	if !l.lie() {
		return model.PortID(1 + l.IntN(4))
	}
	return model.PortID([]uint16{0, 5, 255, math.MaxUint16}[l.IntN(4)])
}

func (l *liar) time() model.Time {
	if !l.lie() {
		return l.now.Add(-time.Duration(l.IntN(int(50 * time.Millisecond))))
	}
	near := model.Time(l.Int64N(int64(2*time.Minute))) - model.Time(time.Minute)
	return []model.Time{0, 1, -1, math.MinInt64, math.MaxInt64, l.now + near, l.now.Add(time.Hour), l.now.Add(-time.Hour)}[l.IntN(8)]
}

func (l *liar) span() time.Duration {
	if !l.lie() {
		return time.Millisecond
	}
	return time.Duration(l.number())
}

func (l *liar) flow() model.FlowKey {
	hosts := l.fabric.Hosts()
	k := model.FlowKey{
		Src: l.fabric.Node(hosts[l.IntN(len(hosts))]).IPv4, Dst: l.fabric.Node(hosts[l.IntN(len(hosts))]).IPv4,
		SrcPort: uint16(l.IntN(4)), DstPort: 4791, Proto: model.UDP,
	}
	if l.lie() {
		k.Src, k.Proto = model.Addr4(l.Uint32()), model.Proto(l.IntN(256))
	}
	return k
}

// flowsetListFor is the list of a switch's flowsets; of any other node it is the last
// switch's.
func flowsetListFor(p *ListPlan, of model.NodeID) dta.ListID {
	if list := p.FlowsetList(of); list != NoList {
		return list
	}
	return dta.ListID(p.Flowsets.end() - 1)
}

// report is one of any kind, in a list that may be another's.
func (l *liar) report(give func(list dta.ListID, data []byte)) {
	list := func(r ListRange, n int) dta.ListID {
		if l.lie() && l.IntN(4) == 0 {
			return dta.ListID(l.IntN(len(l.fabric.Nodes()) + 8))
		}
		return r.First + dta.ListID(n)
	}
	switch Kind(l.IntN(int(numListKinds))) {
	case Flowset:
		l.flowset(func(of model.NodeID, data []byte) {
			give(list(ListRange{First: flowsetListFor(l.plan, of)}, 0), data)
		})
	case Label:
		give(list(l.plan.Labels, 0), l.labels())
	case Mirror:
		give(list(l.plan.Mirrors, 0), l.mirror())
	case Epoch:
		give(list(l.plan.Epochs, 0), l.epoch())
	case DiagnosisRequest:
		p := poll.Poll{
			Layout: poll.Weft, Flag: poll.Both, HopLimit: uint8(l.number()), InPort: l.port(), OutPort: l.port(),
			Event: poll.Event{Host: l.node(l.fabric.Hosts()), Number: uint32(l.IntN(8))}, Origin: l.time(), Flow: l.flow(),
		}
		give(list(l.plan.DiagnosisRequests, 0), p.AppendTo(nil))
	}
}

// flowset is all chunks of a table that can be decoded, or some of them.
func (l *liar) flowset(give func(of model.NodeID, data []byte)) {
	start := l.time()
	h := flowsetHeader(l.sw(), start-start%model.Time(slotLength), slotLength)
	h.Geometry, h.Seed = flowset.Geometry{FilterHashes: 4, FilterBits: 512, Tables: 3, TableCells: 16}, uint64(l.IntN(4))
	of := h.Switch
	if l.lie() {
		h.Scope = l.port()
	}
	if l.lie() && l.IntN(4) == 0 {
		h.Length = l.span()
	}
	if l.lie() && l.IntN(4) == 0 { // more than arrives
		h.TableCells, h.FilterBits = uint32(l.number()), uint32(l.number())
		h.Counts = flowset.Counts{Packets: l.number(), Bytes: l.number(), Flows: uint32(l.number())}
		give(of, flowset.Chunk{Header: h, Section: flowset.Cells, First: uint32(l.number()), Data: make([]byte, h.Layout.Size())}.AppendTo(nil))
		return
	}
	family, err := sketch.NewFamily(sketch.Geometry(h.Geometry), h.Seed)
	if err != nil {
		panic(err)
	}
	cells, filter := make([]flowset.Cell, h.Units(flowset.Cells)), sketch.NewFilter(sketch.Geometry(h.Geometry))
	for range 1 + l.IntN(6) {
		key := l.flow()
		packed := sketch.Pack4(&key)
		hash := sketch.HashOf(&family, &packed)
		if filter.Has(&family, hash) {
			continue
		}
		filter.Add(&family, hash)
		packets, bytes, in, out := l.number(), l.number(), l.port(), l.port()
		h.Counts.Packets, h.Counts.Bytes, h.Counts.Flows = h.Counts.Packets+packets, h.Counts.Bytes+bytes, h.Counts.Flows+1
		canonical := key.AppendTo(nil)
		for t := range int(h.Tables) {
			c := &cells[family.Cell(hash, t)]
			for i, b := range canonical {
				c.Key[i] ^= b
			}
			c.Flows, c.Packets, c.Bytes = c.Flows+1, c.Packets+packets, c.Bytes+bytes
			c.InPort, c.OutPort = c.InPort^in, c.OutPort^out
		}
	}
	var data []byte
	for i := range cells {
		data = h.Layout.AppendCell(data, &cells[i])
	}
	give(of, flowset.Chunk{Header: h, Section: flowset.Filter, Data: filter.AppendBytes(nil, 0, h.Units(flowset.Filter))}.AppendTo(nil))
	give(of, flowset.Chunk{Header: h, Section: flowset.Cells, Data: data}.AppendTo(nil))
}

func (l *liar) labels() (data []byte) {
	e := label.Export{Switch: l.sw(), Time: l.time(), Key: l.flow()}
	for range 1 + l.IntN(label.DefaultMaxHop) {
		data = e.AppendWithLabel(nil, label.Item{
			Switch: l.sw(), Ingress: l.port(), Egress: l.port(), Time: l.time(), Latency: l.span(),
			EnqueueDepth: model.Bytes(l.number() >> 1), DequeueDepth: model.Bytes(l.number() >> 1),
			Queue: uint8(l.number()), Utilisation: uint16(l.number()),
		}, label.Option{NextHeader: model.UDP, MaxHop: label.DefaultMaxHop})
		if _, err := e.Parse(data); err != nil {
			return data
		}
	}
	return data
}

func (l *liar) mirror() []byte {
	k := l.flow()
	frame := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
	ip := packet.IPv4{Length: 60, ID: uint16(l.IntN(4)), TTL: uint8(60 + l.IntN(5)), Proto: k.Proto, Src: k.Src.V4(), Dst: k.Dst.V4()}
	ip.Checksum = ip.Sum()
	frame = packet.UDP{SrcPort: k.SrcPort, DstPort: k.DstPort, Length: 40}.AppendTo(ip.AppendTo(frame))
	frame = append(frame, make([]byte, 32)...)
	m := mirror.Mirror{
		Reasons: mirror.Reasons(1 << l.IntN(5)), Switch: l.sw(), In: l.port(), Out: l.port(), Time: l.time(), Length: uint16(len(frame)), Frame: frame,
	}
	if l.lie() {
		m.Frame = frame[:l.IntN(len(frame))]
	}
	return m.AppendTo(nil)
}

func (l *liar) epoch() []byte {
	c := epoch.Chunk{Total: 1, Header: epoch.Header{
		Switch: l.sw(), Event: poll.Event{Host: l.node(l.fabric.Hosts()), Number: uint32(l.IntN(8))}, Snapshot: l.time(), EpochLength: max(l.span(), 1),
	}}
	if l.lie() {
		c.Total, c.Flags = uint16(l.number()), epoch.Flags(l.number())
	}
	number := func() uint32 { return uint32(l.number()) }
	at := c.Number(c.Snapshot)
	for range l.IntN(12) {
		priority := model.Priority(l.IntN(8))
		switch l.IntN(11) {
		case 0:
			c.Records = epoch.Port{Port: l.port(), Priority: priority, Paused: l.lie(), Remaining: l.span(), Queued: l.number(), Sent: l.number()}.AppendTo(c.Records)
		case 1:
			c.Records = epoch.PortEpoch{Epoch: at - number()%4, Port: l.port(), Priority: priority, Packets: number(), Depth: l.number()}.AppendTo(c.Records)
		case 2:
			c.Records = epoch.Pause{Port: l.port(), Priority: priority, LastStart: l.time(), LastEnd: l.time(), BurstStart: l.time(), Pauses: l.number()}.AppendTo(c.Records)
		case 3:
			c.Records = epoch.Meter{Epoch: at - number()%4, In: l.port(), Out: l.port(), Packets: number(), Bytes: l.number()}.AppendTo(c.Records)
		case 4:
			c.Records = (&epoch.Flow{Epoch: at - number()%4, In: l.port(), Out: l.port(), Priority: priority, Key: l.flow(), Packets: number(), First: l.span(), Last: l.span()}).AppendTo(c.Records)
		case 5:
			c.Records = epoch.CongestionEpisode{Port: l.port(), Priority: priority, First: l.time(), Last: l.time()}.AppendTo(c.Records)
		case 6:
			c.Records = epoch.PortPairBacklog{In: l.port(), Out: l.port(), Packets: number()}.AppendTo(c.Records)
		case 7:
			c.Records = (&epoch.FlowBacklog{PortPairBacklog: epoch.PortPairBacklog{In: l.port(), Out: l.port(), Packets: number()}, Key: l.flow()}).AppendTo(c.Records)
		case 8:
			c.Records = epoch.PollRef{ReceivedAt: l.time()}.AppendTo(c.Records)
		case 9:
			v := epoch.Intervals{Congestion: l.lie(), Port: l.port(), Priority: priority}
			at := epoch.Age(l.span())
			for range 1 + l.IntN(epoch.MaxIntervals) {
				end := at - min(at, 1+epoch.Age(l.IntN(1000)))
				v.Add(epoch.Interval{Start: at, End: end, Bytes: number()})
				at = end - min(end, epoch.Age(l.IntN(1000)))
			}
			if l.lie() {
				v.Earlier = epoch.Earlier{Count: number(), Start: epoch.Age(number()), End: epoch.Age(number()), Total: l.span(), Bytes: number()}
			}
			c.Records = v.AppendTo(c.Records)
		case 10:
			c.Records = epoch.Settings{CongestionThreshold: l.span(), MTU: model.Bytes(number()), Xoff: model.Bytes(number())}.AppendTo(c.Records)
		}
	}
	return c.AppendTo(nil)
}

// lyingBed is a controller whose panics are those of the test.
func lyingBed(t testing.TB, window time.Duration) (*Controller, *topo.Fabric) {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig(intentOf(t, f))
	cfg.TimeWindow, cfg.Flows.MaxSkew = window, cfg.Flows.Slot
	c, err := New(cfg, NoDevices{}, Output{Panic: func(p *Panic) { panic(p.Value) }})
	if err != nil {
		t.Fatal(err)
	}
	return c, f
}

// maxLies is the memory that lies may take in one run: the analyses' own tables, and
// no more than reports contain.
const maxLies = 256 << 20

// FuzzIngestReport gives a whole controller reports that parse and lie, of all kinds,
// and lets time pass: nothing panics, and the memory is bounded. Recovered panics
// count as well.
func FuzzIngestReport(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed*32), uint8(60), seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, lies, reports uint8, windowed bool) {
		window := time.Duration(0)
		if windowed {
			window = time.Minute
		}
		c, fabric := lyingBed(t, window)
		l := &liar{rand.New(rand.NewPCG(seed, 7)), lies, fabric, &c.cfg.ListPlan, model.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range reports {
			l.report(func(list dta.ListID, data []byte) { c.IngestReport(l.now, list, data) })
			l.now = l.now.Add(time.Duration(l.IntN(int(5 * time.Millisecond))))
			c.SetWallClock(l.now)
			c.Tick(l.now)
		}
		for range 20 { // slots, traces and requests end
			l.now = l.now.Add(100 * time.Millisecond)
			c.Tick(l.now)
		}
		c.Flush()
		runtime.ReadMemStats(&after)
		if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > maxLies {
			t.Errorf("%d MiB after %d reports", used>>20, reports)
		}
		s := c.Stats()
		if s.PanickedSteps != 0 || s.Panicked != [numListKinds]uint64{} {
			t.Errorf("panics: %+v", s)
		}
	})
}
