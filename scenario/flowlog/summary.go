package flowlog

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Summary is what the flowsets of a run tell, by the fabric's names.
type Summary struct {
	Slots    int           `json:"slots"`
	Slot     time.Duration `json:"slot_ns"`
	Flows    int           `json:"flows"`
	Flowsets int           `json:"flowsets"`
	Complete int           `json:"flowsets_complete"` // every flow and counter is proven
	Lost     int           `json:"flowsets_damaged"`  // parts of them did not arrive

	Findings   []Finding   `json:"findings"`
	Losses     []Loss      `json:"losses"`
	Imbalances []Imbalance `json:"imbalances"`
	Bursts     []Burst     `json:"bursts"`
	Rhythms    []Rhythm    `json:"rhythms"`
	Top        []Top       `json:"top"`
	Sizes      []int       `json:"sizes"` // element i: flows of 2^(i-1) to 2^i-1 packets
}

// Finding is something wrong with the ways of flows, over all its slots.
type Finding struct {
	Kind     string          `json:"kind"`
	Sure     bool            `json:"sure"`
	At       string          `json:"at"`
	Next     string          `json:"next,omitempty"`
	Switches []string        `json:"switches,omitempty"` // of a loop
	First    int64           `json:"first_slot"`
	Last     int64           `json:"last_slot"`
	Flows    []model.FlowKey `json:"flows"`
	Others   int             `json:"others"` // flows that were well there, in the first slot
}

// Loss is what one link lost.
type Loss struct {
	From    string          `json:"from"`
	To      string          `json:"to,omitempty"` // empty: nobody saw the packets again
	Packets uint64          `json:"packets"`
	Sent    uint64          `json:"sent"`
	Pattern string          `json:"pattern"` // "on the way": From and To are the first and last switch
	Flows   []model.FlowKey `json:"flows"`
}

// Imbalance is a group of equal-cost ports that is used unevenly.
type Imbalance struct {
	Switch string          `json:"switch"`
	Cause  string          `json:"cause"`
	Ratio  float64         `json:"ratio"`
	Flows  []int           `json:"flows"` // by port
	Heavy  []model.FlowKey `json:"heavy,omitempty"`
}

// Burst is a short load of a port to a host.
type Burst struct {
	Port  string          `json:"port"`
	Slot  int64           `json:"slot"`
	Slots int64           `json:"slots"`
	Load  float64         `json:"load"`
	New   int             `json:"new_flows"`
	Flows []model.FlowKey `json:"flows"`
}

// Rhythm is a sender that bursts at even intervals.
type Rhythm struct {
	Port   string        `json:"port"`
	Source string        `json:"source"`
	Bursts int           `json:"bursts"`
	Period time.Duration `json:"period_ns"`
	Mean   float64       `json:"mean_load"`
}

// Top is one of the largest flows.
type Top struct {
	Flow    model.FlowKey `json:"flow"`
	Packets uint64        `json:"packets"`
	Bytes   uint64        `json:"bytes"`
	Exact   bool          `json:"exact"`
}

// Faulty tells whether something is certainly wrong.
func (s *Summary) Faulty() bool {
	return slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.Sure })
}

// Summarize gathers what a watch has found, with the top largest flows.
func Summarize(w *flowwatch.Watch, slots []*flowwatch.Slot, in *topo.Intent, top int) *Summary {
	b := summarizer{fabric: in.At(0).Fabric(), s: &Summary{Slots: len(slots)}, found: map[string]int{}}
	flowsSeen := map[model.FlowKey]bool{}
	rhythms := map[string]Rhythm{}
	for _, s := range slots {
		b.s.Slot = s.Map.Length
		for key := range s.Map.All() {
			flowsSeen[key] = true
		}
		for i := range s.Decoded {
			b.decoded(&s.Decoded[i])
		}
		for i := range s.Paths {
			b.finding(&s.Paths[i])
		}
		for i := range s.Spikes {
			b.burst(&s.Spikes[i])
		}
		for i := range s.Losses {
			b.whole(&s.Losses[i])
		}
		for i := range s.Rhythms { // each says more than the one before
			r := b.rhythm(&s.Rhythms[i])
			rhythms[r.Port+" "+r.Source] = r
		}
	}
	b.s.Flows = len(flowsSeen)
	for _, r := range rhythms {
		b.s.Rhythms = append(b.s.Rhythms, r)
	}
	slices.SortFunc(b.s.Rhythms, func(x, y Rhythm) int { return cmp.Or(cmp.Compare(x.Port, y.Port), cmp.Compare(x.Source, y.Source)) })
	for _, l := range w.Loss.TakeLinks() {
		b.loss(l)
	}
	for _, im := range w.Balance.TakeImbalances() {
		b.imbalance(&im)
	}
	for _, t := range w.Sizes.Top(top) {
		b.s.Top = append(b.s.Top, Top{t.Flow, t.Packets, t.Bytes, t.Exact})
	}
	b.s.Sizes = w.Sizes.Distribution()
	for i := range b.s.Findings {
		slices.SortFunc(b.s.Findings[i].Flows, model.FlowKey.Compare)
	}
	return b.s
}

type summarizer struct {
	fabric *topo.Fabric
	s      *Summary
	found  map[string]int // findings by kind and place
}

func (b *summarizer) port(p model.Port) string { return b.fabric.PortRef(p) }

func (b *summarizer) decoded(d *flows.Decoded) {
	b.s.Flowsets++
	if d.Complete() {
		b.s.Complete++
	}
	if d.MissingCells+d.MissingFilter > 0 {
		b.s.Lost++
	}
}

// finding adds a slot's finding to those of the same kind and place.
func (b *summarizer) finding(f *paths.Finding) {
	n := Finding{Kind: f.Kind.String(), Sure: f.Confirmed, At: b.port(f.At), First: f.Slot, Last: f.Slot, Others: f.Others}
	if f.At.Port == 0 {
		n.At = b.fabric.Node(f.At.Node).Name
	}
	if f.HasNext {
		n.Next = b.port(f.Next)
	}
	for _, id := range f.Switches {
		n.Switches = append(n.Switches, b.fabric.Node(id).Name)
	}
	name := fmt.Sprint(n.Kind, n.At, n.Switches)
	i, ok := b.found[name]
	if !ok {
		i = len(b.s.Findings)
		b.found[name] = i
		b.s.Findings = append(b.s.Findings, n)
	}
	have := &b.s.Findings[i]
	have.Sure = have.Sure || n.Sure
	have.First, have.Last = min(have.First, n.First), max(have.Last, n.Last)
	for _, key := range f.Flows {
		if !slices.Contains(have.Flows, key) {
			have.Flows = append(have.Flows, key)
		}
	}
}

func (b *summarizer) loss(l *loss.Link) {
	if l.Lost == 0 {
		return
	}
	n := Loss{From: b.port(l.From), Packets: l.Lost, Sent: l.Sent, Pattern: l.Pattern().String()}
	if l.To != (model.Port{}) {
		n.To = b.port(l.To)
	}
	for _, h := range l.Affected {
		n.Flows = append(n.Flows, h.Flow)
	}
	n.Flows = slices.Compact(n.Flows)
	b.s.Losses = append(b.s.Losses, n)
}

// whole adds a loss that could not be placed: its flow's way changed, or went
// round.
func (b *summarizer) whole(e *loss.Event) {
	if !e.WholePath {
		return
	}
	n := Loss{From: b.fabric.Node(e.From.Node).Name, Pattern: "on the way"}
	if e.To != (model.Port{}) {
		n.To = b.fabric.Node(e.To.Node).Name
	}
	i := slices.IndexFunc(b.s.Losses, func(l Loss) bool { return l.From == n.From && l.To == n.To && l.Pattern == n.Pattern })
	if i < 0 {
		i = len(b.s.Losses)
		b.s.Losses = append(b.s.Losses, n)
	}
	l := &b.s.Losses[i]
	l.Packets += e.Packets
	l.Sent += e.Sent
	if !slices.Contains(l.Flows, e.Flow) {
		l.Flows = append(l.Flows, e.Flow)
	}
}

func (b *summarizer) imbalance(im *load.Imbalance) {
	n := Imbalance{Switch: b.fabric.Node(im.Switch).Name, Cause: im.Cause.String(), Ratio: im.Ratio, Heavy: im.Heavy}
	for _, p := range im.Ports {
		n.Flows = append(n.Flows, p.Flows)
	}
	b.s.Imbalances = append(b.s.Imbalances, n)
}

func (b *summarizer) burst(s *load.Microburst) {
	b.s.Bursts = append(b.s.Bursts, Burst{b.port(s.Port), s.Slot, s.Slots, s.Load, s.New, s.Flows})
}

func (b *summarizer) rhythm(r *load.PeriodicSender) Rhythm {
	return Rhythm{b.port(r.Port), r.Source.String(), r.Bursts, r.Period, r.Mean}
}
