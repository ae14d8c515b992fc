package bench

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
)

var flowsetSuite = Suite{
	Name:  "flowset",
	About: "count every flow of a switch, and decode the exported flowsets",
	Input: "packets of 100,000 IPv4 flows in random order, one core; tables sized for them by flowset.Plan; all 80 switches of a fat-tree (k=8), each with 126,800 flows in a table for 100,000",
	run: func(ctx context.Context) ([]Result, error) {
		var out []Result
		for _, part := range []func(context.Context) ([]Result, error){
			compareEncode, compareSingleDecode,
			compareNetDecode,
		} {
			results, err := part(ctx)
			if err != nil {
				return nil, err
			}
			out = append(out, results...)
		}
		return out, nil
	},
}

const (
	flowsetFlows = 100_000
	slotPackets  = 1 << 20 // ten of each flow
)

// compareEncode compares the whole program, as a host calls it for every packet,
// with the update of a plain map: key in, counters up. With slots, both also end
// one periodically: the program swaps tables and exports the old one; the map is
// read out as records of key and counters, and cleared.
func compareEncode(ctx context.Context) ([]Result, error) {
	stream := packetStream(flowsetFlows, 1<<18)
	e, err := newEncoder(stream)
	if err != nil {
		return nil, err
	}
	m := flowMap{stream: stream, flows: map[model.FlowKey]*flowCounters{}}
	e.run(slotPackets, slotPackets) // from here on all memory is allocated
	m.run(slotPackets, slotPackets)
	e.run(slotPackets, 0)
	m.run(slotPackets, 0)
	known, err := alternateRounds(ctx, func(n int) { e.run(n, 0) }, func(n int) { m.run(n, 0) })
	if err != nil {
		return nil, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e.run(slotPackets, slotPackets/4)
	runtime.ReadMemStats(&after)
	allocs := float64(after.Mallocs-before.Mallocs) / slotPackets

	// A whole slot is one operation, so that every round has its share of new
	// flows and exports.
	e.packets, m.packets = 0, 0
	slots, err := alternateRounds(ctx,
		func(n int) { e.run(n*slotPackets, slotPackets) },
		func(n int) { m.run(n*slotPackets, slotPackets) })
	if err != nil {
		return nil, err
	}
	const name = "map[FlowKey]*Counters"
	return []Result{
		higherIsBetter("encode, flows known", 1e3/known[0], "Mpkt/s", name, 1e3/known[1], 3),
		higherIsBetter("encode, with slots", 1e3*slotPackets/slots[0], "Mpkt/s", name, 1e3*slotPackets/slots[1], 1.5),
		mustBeZero("encode, allocations", allocs, "per packet"),
	}, nil
}

// mustBeZero is a result that passes only at zero.
func mustBeZero(name string, value float64, unit string) Result {
	r := Result{Name: name, Value: value, Unit: unit, Peer: "none", Goal: 1, Pass: value == 0}
	if r.Pass {
		r.Ratio = 1
	}
	return r
}

// randomKeys draws the keys of a number of flows.
func randomKeys(flows int) []model.FlowKey {
	r := rand.New(rand.NewPCG(1, 2))
	keys := make([]model.FlowKey, flows)
	for i := range keys {
		keys[i] = model.FlowKey{
			Src: model.Addr4(r.Uint32()), Dst: model.Addr4(r.Uint32()),
			SrcPort: uint16(r.Uint32()), DstPort: 80, Proto: model.TCP,
		}
	}
	return keys
}

// packetStream draws packets of random flows.
func packetStream(flows, packets int) []model.FlowKey {
	r := rand.New(rand.NewPCG(3, 4))
	keys := randomKeys(flows)
	stream := make([]model.FlowKey, packets)
	for i := range stream {
		stream[i] = keys[r.IntN(flows)]
	}
	return stream
}

// encoder shows packets to the program, as a host does.
type encoder struct {
	stream  []model.FlowKey
	program inswitch.Program
	ev      inswitch.Event
	act     inswitch.Actions
	packets int
	slot    model.Time
}

func newEncoder(stream []model.FlowKey) (*encoder, error) {
	s, err := flowset.Plan(flowsetFlows, 0.99, flowset.Single)
	if err != nil {
		return nil, err
	}
	cfg := flowset.DefaultConfig()
	cfg.IPv4 = flowset.Table{Geometry: s.Geometry, Layout: flowset.Layout4}
	cfg.IPv6 = flowset.Table{}
	p, err := flowset.New(inswitch.Device{ID: 1, MTU: 1500, Ports: make([]inswitch.Port, 64)}, cfg)
	if err != nil {
		return nil, err
	}
	e := &encoder{stream: stream, program: p, slot: model.Time(cfg.Slot)}
	e.ev.Packet, e.ev.Switch = &inswitch.Packet{Size: 1000}, onePortSwitch{}
	e.wake(inswitch.StartTimer)
	return e, nil
}

// run shows n packets, with slot packets per slot; 0: all are in the same.
func (e *encoder) run(n, slot int) {
	e.ev.Stage, e.ev.In = inswitch.Ingress, 3
	for range n {
		key := &e.stream[e.packets%len(e.stream)]
		e.ev.Packet.Key, e.ev.Packet.Outer = key, key
		e.program.Observe(&e.ev, &e.act)
		e.packets++
		if slot > 0 && e.packets%slot == 0 {
			e.export()
		}
	}
}

// export ends a slot and fires timers until the tables are sent.
func (e *encoder) export() {
	e.ev.Now += e.slot - e.ev.Now%e.slot
	for end := e.ev.Now + e.slot*9/10; e.ev.Now < end; {
		e.wake(1)
		e.ev.Now += model.Time(e.act.Timers[0].Delay)
	}
	e.ev.Stage = inswitch.Ingress
}

func (e *encoder) wake(timer inswitch.TimerID) {
	e.ev.Stage, e.ev.Timer = inswitch.Timer, timer
	e.act.Reset()
	e.program.Observe(&e.ev, &e.act)
}

// onePortSwitch is a switch that sends every flow out of one port.
type onePortSwitch struct{}

func (onePortSwitch) Route(*model.FlowKey) (model.PortID, bool)             { return 5, true }
func (onePortSwitch) Queue(model.PortID, model.Priority) (q inswitch.Queue) { return q }

type flowCounters struct{ packets, bytes uint64 }

// flowMap counts flows in a plain map.
type flowMap struct {
	stream  []model.FlowKey
	flows   map[model.FlowKey]*flowCounters
	packets int
	records []byte
}

func (m *flowMap) run(n, slot int) {
	for range n {
		key := &m.stream[m.packets%len(m.stream)]
		c := m.flows[*key]
		if c == nil {
			c = new(flowCounters)
			m.flows[*key] = c
		}
		c.packets++
		c.bytes += 1000
		m.packets++
		if slot > 0 && m.packets%slot == 0 {
			m.export()
		}
	}
}

func (m *flowMap) export() {
	m.records = m.records[:0]
	for key, c := range m.flows {
		m.records = key.AppendTo(m.records)
		m.records = binary.BigEndian.AppendUint64(m.records, c.packets)
		m.records = binary.BigEndian.AppendUint64(m.records, c.bytes)
	}
	clear(m.flows)
}
