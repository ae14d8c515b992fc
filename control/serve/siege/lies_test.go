package siege

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/poll"
)

// lie is a kind of hostile datagram.
type lie struct {
	name string
	to   string // the service's socket: dta, int or erspan
	// spoofed ones come from the address and port of the node that they pretend to
	// be of, where it is honest; others come from a stranger's.
	spoofed bool
	make    func(h *hostile) []byte // nil: not now
}

// lies are all kinds of hostile datagrams.
var lies = []lie{
	{"random bytes", "dta", false, func(h *hostile) []byte { return h.bytes(1 + h.r.IntN(1400)) }},
	{"mutated datagrams", "dta", true, func(h *hostile) []byte { return h.flip(h.replay()) }},
	{"replayed datagrams", "dta", true, (*hostile).replay},
	{"replayed by a stranger", "dta", false, (*hostile).replay},
	{"prototype headers", "dta", false, (*hostile).prototype},
	{"flowsets of unknown switches", "dta", false, (*hostile).unknownFlowset},
	{"flowset bombs", "dta", true, (*hostile).bomb},
	{"invented sources", "dta", false, (*hostile).inventedSource},
	{"lying flowsets", "dta", true, (*hostile).lyingFlowset},
	{"epochs with bad records", "dta", true, (*hostile).badEpoch},
	{"references to one event", "dta", true, (*hostile).reference},
	{"lying epochs", "dta", true, (*hostile).lyingEpoch},
	{"mirrors of 1677 and 2262", "dta", true, (*hostile).datedMirror},
	{"mirrors of a loop", "dta", true, func(h *hostile) []byte { return h.loop(h.victim()) }},
	{"moved sequences", "dta", true, (*hostile).movedSequence},
	{"lying labels", "dta", true, (*hostile).lyingLabel},
	{"requests of invented hosts", "dta", true, (*hostile).inventedRequest},
	{"other switches' lists", "dta", true, (*hostile).otherList},
	{"INT noise", "int", false, (*hostile).intNoise},
	{"INT lies", "int", false, (*hostile).intLie},
	{"ERSPAN noise", "erspan", false, (*hostile).erspanNoise},
	{"ERSPAN lies", "erspan", false, (*hostile).erspanLie},
}

// replay is a datagram as it was overheard.
func (h *hostile) replay() []byte {
	h.bank.mu.Lock()
	defer h.bank.mu.Unlock()
	if len(h.bank.datagrams) == 0 {
		return nil
	}
	return append([]byte(nil), h.bank.datagrams[h.r.IntN(len(h.bank.datagrams))]...)
}

func (h *hostile) prototype() []byte {
	p := dta.Prototype{Layout: dta.Base3, Seq: uint8(h.r.Uint32())}
	p.Report = dta.Report{Primitive: dta.Append, List: dta.ListID(h.r.IntN(64)), Data: h.bytes(4)}
	return p.AppendTo(nil)
}

// unknownFlowset is an honest flowset under the id of no switch: it can be decoded,
// and has the flows of a real one.
func (h *hostile) unknownFlowset() []byte {
	var c flowset.Chunk
	if _, err := c.Parse(h.overheard(flowsets)); err != nil {
		return nil
	}
	list := h.lists.FlowsetList(c.Switch)
	c.Switch = 5000
	return h.datagram(h.victim(), list, c.AppendTo(nil))
}

// header is of a flowset of now.
func (h *hostile) flowsetHeader(sw model.NodeID) flowset.Header {
	const length = slot
	now := h.clock.model()
	return flowset.Header{
		Switch: sw, Seed: h.r.Uint64(), Slot: uint32(now / model.Time(length)), Start: now - now%model.Time(length), Length: length,
		Geometry: flowset.Geometry{FilterHashes: 4, FilterBits: 1024, Tables: 3, TableCells: 32},
		Layout:   flowset.Layout{Key: model.KeyLen4, Flows: 2, Packets: 4, Bytes: 4, Ports: 2},
	}
}

// bomb claims a table of up to 50 million cells.
func (h *hostile) bomb() []byte {
	sw := h.victimSwitch()
	head := h.flowsetHeader(sw)
	head.TableCells = 1 << (15 + h.r.IntN(10))
	c := flowset.Chunk{Header: head, Section: flowset.Cells, Data: h.bytes(head.Layout.Size())}
	return h.datagram(sw, h.lists.FlowsetList(sw), c.AppendTo(nil))
}

// inventedSource is of a source that has never been: another seed, and often
// another switch.
func (h *hostile) inventedSource() []byte {
	sw := h.node()
	head := h.flowsetHeader(sw)
	c := flowset.Chunk{Header: head, Section: flowset.Cells, Data: h.bytes(head.Layout.Size())}
	return h.datagram(h.victim(), h.lists.Flowsets.First+dta.ListID(sw)%dta.ListID(h.lists.Flowsets.Count), c.AppendTo(nil))
}

// lyingFlowset is an honest one with other counts, sizes and times.
func (h *hostile) lyingFlowset() []byte {
	var c flowset.Chunk
	if _, err := c.Parse(h.overheard(flowsets)); err != nil {
		return nil
	}
	sw := h.victimSwitch()
	c.Switch = sw
	switch h.r.IntN(6) {
	case 0:
		c.Start = h.time()
	case 1:
		c.Slot = h.r.Uint32()
	case 2:
		c.Counts = flowset.Counts{Packets: h.number(), Bytes: h.number(), Flows: uint32(h.number())}
	case 3:
		c.Length = time.Duration(h.number() >> 1)
	case 4:
		c.Data = h.flip(c.Data)
	case 5:
		c.Scope = model.PortID(h.r.Uint32())
	}
	return h.datagram(sw, h.lists.FlowsetList(sw), c.AppendTo(nil))
}

// badEpoch is a chunk of a long report whose only record is not one.
func (h *hostile) badEpoch() []byte {
	sw := h.victimSwitch()
	c := epoch.Chunk{Header: h.epochHeader(sw), Total: 65535, Index: uint16(h.r.IntN(65535))}
	c.Records = epoch.Port{Port: 1, Priority: 3}.AppendTo(nil)
	c.Records[2] |= 0xff // reserved bits
	c.Records[5] |= 0xff
	return h.datagram(sw, h.lists.Epochs.First, c.AppendTo(nil))
}

func (h *hostile) epochHeader(sw model.NodeID) epoch.Header {
	hosts := h.fabric.Hosts()
	return epoch.Header{
		Switch: sw, Event: poll.Event{Host: hosts[h.r.IntN(len(hosts))], Number: h.r.Uint32()},
		Snapshot: h.clock.model() - model.Time(h.r.IntN(1e9)), EpochLength: time.Millisecond,
	}
}

// reference is one of many answers to one event that refer to snapshots.
func (h *hostile) reference() []byte {
	sw := h.victimSwitch()
	head := h.epochHeader(sw)
	head.Event = poll.Event{Host: h.fabric.Hosts()[0], Number: 7}
	head.Flags = epoch.ByReference
	c := epoch.Chunk{Header: head, Total: 1, Records: epoch.PollRef{ReceivedAt: h.clock.model()}.AppendTo(nil)}
	return h.datagram(sw, h.lists.Epochs.First, c.AppendTo(nil))
}

// lyingEpoch has enormous counters, and ports that no switch has.
func (h *hostile) lyingEpoch() []byte {
	sw := h.victimSwitch()
	head := h.epochHeader(sw)
	if h.r.IntN(2) == 0 {
		head.Snapshot = h.time()
	}
	c := epoch.Chunk{Header: head, Total: 1}
	port := func() model.PortID { return model.PortID(h.number()) }
	c.Records = epoch.Port{Port: port(), Priority: 3, Paused: true, Remaining: time.Hour, Queued: h.number(), Sent: h.number()}.AppendTo(c.Records)
	c.Records = epoch.PortEpoch{Epoch: h.r.Uint32(), Port: port(), Priority: 3, Packets: h.r.Uint32(), Depth: h.number()}.AppendTo(c.Records)
	c.Records = epoch.Pause{Port: port(), Priority: 3, LastStart: h.time(), LastEnd: h.time(), Pauses: h.number()}.AppendTo(c.Records)
	c.Records = epoch.Meter{Epoch: h.r.Uint32(), In: port(), Out: port(), Packets: h.r.Uint32(), Bytes: h.number()}.AppendTo(c.Records)
	v := epoch.Intervals{Port: port(), Priority: 3}
	for i := range h.r.IntN(epoch.MaxIntervals) {
		v.Add(epoch.Interval{Start: epoch.MaxAge - epoch.Age(2*i), End: epoch.MaxAge - epoch.Age(2*i+1+h.r.IntN(3)), Bytes: h.r.Uint32()}) // some overlap
	}
	if v.Count > 0 {
		c.Records = v.AppendTo(c.Records)
	}
	return h.datagram(sw, h.lists.Epochs.First, c.AppendTo(nil))
}

// frame is a UDP packet of one host of the last pod to another.
func (h *hostile) frame(id uint16, ttl uint8) []byte {
	hosts := h.fabric.Hosts()
	from, to := hosts[len(hosts)-1], hosts[len(hosts)-4]
	b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
	ip := packet.IPv4{Length: 20 + 8 + 32, ID: id, TTL: ttl, Proto: model.UDP, Src: h.fabric.Node(from).IPv4.V4(), Dst: h.fabric.Node(to).IPv4.V4()}
	ip.Checksum = ip.Sum()
	b = ip.AppendTo(b)
	b = packet.UDP{SrcPort: 7, DstPort: 4791, Length: 8 + 32}.AppendTo(b)
	return append(b, make([]byte, 32)...)
}

// datedMirror is of a time that no clock of the fabric has shown or will show.
func (h *hostile) datedMirror() []byte {
	sw := h.victimSwitch()
	year := []int{1677, 1678, 1969, 2100, 2262}[h.r.IntN(5)]
	m := mirror.Mirror{
		Reasons: mirror.Debug, Switch: sw, In: 1, Out: 2, Time: model.TimeOf(time.Date(year, 11, 1, 0, 0, 0, h.r.IntN(1e9), time.UTC)),
		Frame: h.frame(uint16(h.r.Uint32()), 63),
	}
	if year == 2262 {
		m.Time = model.TimeOf(time.Date(2262, 4, 10, 0, 0, 0, 0, time.UTC))
	}
	m.Length = uint16(len(m.Frame))
	return h.datagram(sw, h.lists.Mirrors.First, m.AppendTo(nil))
}

// loop is one of the mirrors of a packet that goes round between two switches of
// the last pod, sent as a reporter.
func (h *hostile) loop(as model.NodeID) []byte {
	p := placeIn(h.fabric, 3)
	hop := h.n % 8
	id := uint16(h.n / 8)
	h.n++
	m := mirror.Mirror{
		Reasons: mirror.Debug, Switch: []model.NodeID{p.tor, p.above}[hop%2], In: 3, Out: 4,
		Time: h.clock.model(), Frame: h.frame(id, uint8(63-hop)),
	}
	m.Length = uint16(len(m.Frame))
	return h.datagram(as, h.lists.Mirrors.First, m.AppendTo(nil))
}

// movedSequence is an empty datagram that is far ahead of what its reporter has
// sent.
func (h *hostile) movedSequence() []byte {
	return dta.Header{Reporter: h.victim(), Seq: dta.Seq(h.r.Uint32())}.AppendTo(nil)
}

// lyingLabel is of switches and ports that are none, of absurd times, delays and
// queues.
func (h *hostile) lyingLabel() []byte {
	sw := h.victimSwitch()
	e := label.Export{Switch: sw, Time: h.time()}
	e.Key = model.FlowKey{
		Src: h.fabric.Node(h.fabric.Hosts()[0]).IPv4, Dst: h.fabric.Node(h.fabric.Hosts()[5]).IPv4,
		SrcPort: uint16(h.r.Uint32()), DstPort: 4791, Proto: model.UDP,
	}
	item := label.Item{
		Switch: h.node(), Ingress: model.PortID(h.number()), Egress: model.PortID(h.number()), Time: h.time(),
		Latency: time.Duration(h.number() >> 1), EnqueueDepth: model.Bytes(h.number() >> 1), DequeueDepth: model.Bytes(h.number() >> 1),
		Queue: uint8(h.r.Uint32()), Utilisation: uint16(h.r.Uint32()),
	}
	return h.datagram(sw, h.lists.Labels.First, e.AppendWithLabel(nil, item, label.Option{NextHeader: model.UDP, MaxHop: 5}))
}

// inventedRequest is a diagnosis request of a host that is none, or about a flow
// that is none.
func (h *hostile) inventedRequest() []byte {
	p := poll.Poll{
		Layout: poll.Weft, Flag: poll.Both, HopLimit: 64, Event: poll.Event{Host: h.node(), Number: h.r.Uint32()}, Origin: h.time(),
		Flow: model.FlowKey{
			Src: h.fabric.Node(h.fabric.Hosts()[0]).IPv4, Dst: h.fabric.Node(h.fabric.Hosts()[15]).IPv4,
			SrcPort: uint16(h.r.Uint32()), DstPort: 4791, Proto: model.UDP,
		},
	}
	return h.datagram(h.victim(), h.lists.DiagnosisRequests.First, p.AppendTo(nil))
}

// otherList is a report in a list that is not its reporter's, or that is none.
func (h *hostile) otherList() []byte {
	data := h.overheard(h.r.IntN(numLists))
	if data == nil {
		return nil
	}
	return h.datagram(h.victim(), dta.ListID(h.r.IntN(64)), data)
}
