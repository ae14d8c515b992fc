package flowradar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/dta"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

var bandwidth = claim.Claim{
	ID: "flowradar-bandwidth", Where: "section 5.1, figure 4",
	Says:      "a switch that exports the flowsets of 100K flows every 10 ms sends this much, and they decode by themselves",
	Published: "2.3 Gb/s",
	Run:       runBandwidth,
	Mutations: []claim.Mutation{narrowCounters, severalCells},
}

// exportedBytes are the bytes that a switch sent of some flowsets.
type exportedBytes struct {
	units     int // filters and cells
	chunks    int // with their headers
	datagrams int // with those of DTA, UDP, IPv4 and Ethernet
}

// runBandwidth has the switch program count 100K flows in each of some slots, and
// decodes what it exports.
func runBandwidth(ctx context.Context, o claim.Options) (claim.Result, error) {
	const n, published = 100_000, 2.304e9 // 2.88 MB in 10 ms
	plan, err := flowset.Plan(n, 0.999, flowset.Single)
	if err != nil {
		return claim.Result{}, err
	}
	cells := narrowCells
	if o.Without(narrowCounters) {
		cells = flowset.Layout4
	}
	if o.Without(severalCells) {
		plan.TableCells *= uint32(plan.Tables)
		plan.Tables = 1
	}
	slots := o.Pick(100, 3)
	s, err := newExporter(flowset.Table{Geometry: plan.Geometry, Layout: cells})
	if err != nil {
		return claim.Result{}, err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	decoded := 0
	for i := range slots {
		if err := ctx.Err(); err != nil {
			return claim.Result{}, err
		}
		o.Report(float64(i)/float64(slots), "slots of 100K flows")
		whole, err := s.slot(randomKeys(rng, n))
		if err != nil {
			return claim.Result{}, err
		}
		if whole {
			decoded++
		}
	}
	rate := func(bytes int) float64 { return float64(bytes) * 8 / float64(slots) / slotLength.Seconds() }
	gbps := func(bytes int) string { return fmt.Sprintf("%.2f Gb/s", rate(bytes)/1e9) }
	res := claim.Result{
		Measured: fmt.Sprintf("%s; %d of %d flowsets decode", gbps(s.sent.units), decoded, slots),
		Pass:     rate(s.sent.units) <= published && float64(decoded) >= 0.99*float64(slots),
		Notes: []string{
			"counted at the switch program's output: filters and cells without headers, as the published figure is the memory of a flowset in each slot; the table has headers too",
			fmt.Sprintf("cells of %d bytes; passes when they take no more than 2.88 MB in 10 ms and 99 %% or more of the flowsets decode, with the count and the ports of every flow", cells.Size()),
		},
	}
	t := claim.Table{Title: "what a switch sends", Header: []string{"filters and cells", "chunks", "datagrams of 1,500 bytes"}}
	t.Row(gbps(s.sent.units), gbps(s.sent.chunks), gbps(s.sent.datagrams))
	res.Tables = []claim.Table{t}
	return res, nil
}

// exporter is a switch of 64 ports that runs the flowset program, and the collector
// of its exports.
type exporter struct {
	program   *flowset.Program
	act       inswitch.Actions
	ev        inswitch.Event
	assembler *flows.Assembler
	done      []*flows.Flowset
	sent      exportedBytes
}

func newExporter(t flowset.Table) (*exporter, error) {
	cfg := flowset.DefaultConfig()
	cfg.Slot, cfg.IPv4, cfg.IPv6 = slotLength, t, flowset.Table{}
	p, err := flowset.New(inswitch.Device{ID: 1, MTU: 1500, Ports: make([]inswitch.Port, 64)}, cfg)
	if err != nil {
		return nil, err
	}
	x := &exporter{program: p}
	if x.assembler, err = flows.NewAssembler(flows.DefaultConfig()); err != nil {
		return nil, err
	}
	x.ev.Switch, x.ev.Packet = x, &inswitch.Packet{Size: 1000}
	return x, x.wake(inswitch.StartTimer)
}

// Route is part of inswitch.Switch: the egress port is drawn from the flow.
func (x *exporter) Route(k *model.FlowKey) (model.PortID, bool) {
	return model.PortID(1 + k.Hash(0)%64), true
}

// Queue is part of inswitch.Switch. No packet waits.
func (x *exporter) Queue(model.PortID, model.Priority) inswitch.Queue { return inswitch.Queue{} }

// slot has the switch count 1 to 8 packets of each flow and export them. It reports
// whether all flows were decoded, with their counts and ports.
func (x *exporter) slot(keys []model.FlowKey) (bool, error) {
	var want, got uint64
	for i := range keys {
		k := &keys[i]
		h := k.Hash(1)
		in, packets := model.PortID(1+h%64), 1+h>>8%8
		out, _ := x.Route(k)
		want += recordDigest(k, packets, in, out)
		x.ev.Stage, x.ev.In, x.ev.Packet.Key, x.ev.Packet.Outer = inswitch.Ingress, in, k, k
		for range packets {
			x.program.Observe(&x.ev, &x.act)
		}
	}
	length := model.Time(slotLength)
	x.ev.Now += length - x.ev.Now%length
	x.done = x.done[:0]
	for end := x.ev.Now + length; ; {
		if err := x.wake(1); err != nil {
			return false, err
		}
		next := x.ev.Now + model.Time(x.act.Timers[0].Delay)
		if next >= end {
			break // the export has ended, and the timer is that of the next slot
		}
		x.ev.Now = next
	}
	if len(x.done) != 1 {
		return false, fmt.Errorf("%d flowsets were exported in a slot, want 1", len(x.done))
	}
	d := flows.SingleDecode(x.done[0])
	for i := range d.Records {
		r := &d.Records[i]
		if r.Grade != flows.Exact {
			return false, nil
		}
		got += recordDigest(&r.Key, r.Packets, r.In, r.Out)
	}
	return len(d.Records) == len(keys) && got == want, nil
}

// wake fires the timer and takes what the program reports.
func (x *exporter) wake(timer inswitch.TimerID) error {
	x.ev.Stage, x.ev.Timer = inswitch.Timer, timer
	x.act.Reset()
	x.program.Observe(&x.ev, &x.act)
	const ethernet, ipv4, udp = 18, 20, 8
	for i := range x.act.Reports {
		r := &x.act.Reports[i]
		var c wire.Chunk
		if _, err := c.Parse(r.Data); err != nil {
			return err
		}
		x.sent.units += len(c.Data)
		x.sent.chunks += len(r.Data)
		x.sent.datagrams += ethernet + ipv4 + udp + dta.HeaderSize + r.Size()
		var err error
		if x.done, err = x.assembler.AddChunk(x.ev.Now, r.Data, x.done); err != nil {
			return err
		}
	}
	if len(x.act.Timers) == 0 {
		return errors.New("the flowset program set no timer")
	}
	return nil
}

func recordDigest(k *model.FlowKey, packets uint64, in, out model.PortID) uint64 {
	key := sketch.Pack4(k)
	return digest(&key, packets<<32|uint64(in)<<16|uint64(out))
}
