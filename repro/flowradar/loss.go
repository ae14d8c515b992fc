package flowradar

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
)

var lossDelay = claim.Claim{
	ID: "flowradar-loss-delay", Where: "section 6.2, figure 10",
	Says:      "on web-search traffic with incast, comparing counters before and behind a queue finds this share of losses within 20 ms and within 50 ms",
	Published: "more than 57 % and more than 99 %",
	Run:       runLossDelay,
	Mutations: []claim.Mutation{outgoingCounters, arrivalSlots},
}

func runLossDelay(ctx context.Context, o claim.Options) (claim.Result, error) {
	loads := []float64{0.05, 0.1, 0.2, 0.3}
	span := 100 * time.Millisecond
	switch {
	case o.Broken():
		loads, span = loads[1:2], 10*time.Millisecond
	case o.Quick:
		loads, span = loads[:2], 30*time.Millisecond
	}
	counted := bothSides
	if o.Without(arrivalSlots) {
		counted = bothByDeparture
	}
	res := claim.Result{Pass: true, Notes: []string{
		"fat-tree k=8, 10 Gb/s, TCP with a least timeout of 200 ms, queues of 150 KB, slots of 10 ms; switches count incoming packets, and outgoing ones in the slot in which they arrived: the difference of the two is what a switch dropped, and no packet is in flight between them",
		"a delay runs from the drop in the simulator to the end of the slot that showed it, and the 0.2 ms that outgoing packets are waited for; 0.1 ms of export come on top; losses that were never found count as late",
		"flowlets: the published method, on the same flowsets. A loss is found when its flowlet ends, and the more load, the longer flowlets last; the paper gives neither the load of background flows nor the size of answers, here 20 KB",
		"passes when the published shares are reached at every load, and at most one in 100 losses is reported in excess",
	}}
	t := claim.Table{
		Title: "losses found",
		Header: []string{
			"load", "lost packets", "found", "found in excess", "within 20 ms", "within 50 ms", "flows not compared",
			"by flowlets: found", "in excess", "within 20 ms", "within 50 ms",
			"flowlets up to 30 ms", "longest flowlet",
		},
	}
	chart := plot.Chart{Title: "How soon losses are found", XTitle: "ms since the drop", YTitle: "share of losses"}
	for i, share := range loads {
		w, err := newWebSearch(o.Seed, share, span, counted)
		if err != nil {
			return res, err
		}
		if err := w.run(ctx, func(done float64) {
			o.Report((float64(i)+done)/float64(len(loads)), fmt.Sprintf("simulating a load of %.0f %%", 100*share))
		}); err != nil {
			return res, err
		}
		flowlets, err := w.matchFlowlets(o)
		if err != nil {
			return res, err
		}
		f := flowlets
		if !o.Without(outgoingCounters) {
			f = w.matchDrops()
		}
		in20, in50 := f.within(20), f.within(50)
		short, longest := flowlets.flowlets()
		res.Measured += fmt.Sprintf("%s%s and %s at a load of %.0f %%", separator(i), percent(in20), percent(in50),
			100*share)
		res.Pass = res.Pass && in20 > 0.57 && in50 > 0.99 && f.excess*100 <= f.drops
		t.Row(fmt.Sprintf("%.0f %%", 100*share), fmt.Sprint(f.drops),
			percent(float64(len(f.delays))/float64(f.drops)), fmt.Sprint(f.excess),
			percent(in20), percent(in50), fmt.Sprint(f.uncertain),
			percent(float64(len(flowlets.delays))/float64(flowlets.drops)), fmt.Sprint(flowlets.excess),
			percent(flowlets.within(20)), percent(flowlets.within(50)), percent(short), fmt.Sprintf("%d ms", longest))
		chart.Series = append(chart.Series, plot.Series{Name: fmt.Sprintf("load %.0f %%", 100*share), Values: f.delays})
	}
	chart.Series = append(chart.Series,
		plot.Series{Name: "published", X: []float64{20, 50}, Y: []float64{0.57, 0.99}, Dashed: true})
	res.Tables, res.Plots = []claim.Table{t}, []claim.Plot{{Chart: chart}}
	return res, nil
}

// lossFound is the result of matching reported losses with the drops of a run.
type lossFound struct {
	drops     int
	delays    []float64 // ms, of those that were found
	excess    int       // packets reported lost that were not
	uncertain int       // flows of a switch and slot whose counts were not comparable
	lifetimes []int     // slots that flowlets lasted
}

func (f *lossFound) within(ms float64) float64 {
	n := 0
	for _, d := range f.delays {
		if d <= ms {
			n++
		}
	}
	return float64(n) / float64(max(f.drops, 1))
}

func (f *lossFound) flowlets() (upTo30 float64, longest int) {
	n := 0
	for _, slots := range f.lifetimes {
		longest = max(longest, slots*int(slotLength.Milliseconds()))
		if slots <= 3 {
			n++
		}
	}
	return float64(n) / float64(max(len(f.lifetimes), 1)), longest
}

// flowAtSwitch is a flow at the switch that dropped packets of it.
type flowAtSwitch struct {
	flow model.FlowKey
	node model.NodeID
}

// openDrops returns the instants of the drops of the run, by flow and switch, the oldest
// first, and their number.
func (w *webSearch) openDrops() (open map[flowAtSwitch][]model.Time, n int) {
	open = map[flowAtSwitch][]model.Time{}
	for _, d := range w.truth.Drops() {
		at := flowAtSwitch{d.Key, d.Port.Node}
		open[at] = append(open[at], d.At.Model())
		n++
	}
	return open, n
}

// matchDrops compares each switch's incoming and outgoing flowsets of a slot, and matches
// what it lacks with the drops of the run. The feeds must be decoded.
func (w *webSearch) matchDrops() *lossFound {
	open, n := w.openDrops()
	list, uncertain := w.drops()
	f := &lossFound{drops: n, uncertain: uncertain}
	slices.SortStableFunc(list, func(a, b loss.Drop) int { return cmp.Compare(a.Slot, b.Slot) })
	for _, d := range list {
		at := flowAtSwitch{d.Flow, d.Switch}
		end := model.Time(slotLength) * model.Time(d.Slot+1)
		open[at] = f.match(open[at], d.Packets, end.Add(longestWait))
	}
	return f
}

// matchFlowlets feeds the flowsets to trackers and matches the losses they report
// with the drops of the run.
func (w *webSearch) matchFlowlets(o claim.Options) (*lossFound, error) {
	f := &lossFound{}
	var open map[flowAtSwitch][]model.Time
	open, f.drops = w.openDrops()
	// Outgoing counters show the drops of all queues but the first switch's,
	// before which no switch counted: incoming counters show those.
	for _, side := range []struct {
		feed  *feed
		first bool
	}{{w.outgoing, false}, {w.incoming, true}} {
		if o.Without(outgoingCounters) && !side.first {
			continue
		}
		maps, err := w.maps(side.feed)
		if err != nil {
			return nil, err
		}
		tracker, err := loss.NewTracker(loss.DefaultConfig(w.net.Intent()))
		if err != nil {
			return nil, err
		}
		for _, m := range maps {
			for _, e := range tracker.Observe(m) {
				at, ok := w.droppingSwitch(&e, side.first)
				if ok {
					open[at] = f.match(open[at], e.Packets, m.End())
				}
			}
		}
		if side.first {
			f.lifetimes = flowletLifetimes(maps)
		}
	}
	return f, nil
}

// droppingSwitch returns which switch's queue dropped the packets of an event, and
// whether this side's events are counted there.
func (w *webSearch) droppingSwitch(e *loss.Event, first bool) (flowAtSwitch, bool) {
	fabric := w.net.Fabric()
	owner, ok := fabric.ByAddr(e.Flow.Src)
	source := ok && fabric.Node(owner).Ports[0].Peer.Node == e.From.Node
	if first {
		return flowAtSwitch{e.Flow, e.From.Node}, source
	}
	if e.To.Node != 0 || e.To.Port != 0 {
		return flowAtSwitch{e.Flow, e.To.Node}, true
	}
	if p := fabric.Port(e.From); p != nil {
		return flowAtSwitch{e.Flow, p.Peer.Node}, true
	}
	return flowAtSwitch{}, false
}

func (f *lossFound) match(open []model.Time, packets uint64, found model.Time) []model.Time {
	for ; packets > 0; packets-- {
		if len(open) == 0 || open[0] > found {
			f.excess++
			continue
		}
		f.delays = append(f.delays, float64(found.Sub(open[0]).Microseconds())/1e3)
		open = open[1:]
	}
	return open
}

// flowletLifetimes returns how many slots flowlets lasted.
func flowletLifetimes(maps []*paths.Map) []int {
	var lives []int
	alive := map[model.FlowKey]int{}
	for _, m := range maps {
		seen := map[model.FlowKey]bool{}
		for key := range m.All() {
			alive[key]++
			seen[key] = true
		}
		for key, slots := range alive {
			if !seen[key] {
				lives = append(lives, slots)
				delete(alive, key)
			}
		}
	}
	slices.Sort(lives)
	return lives
}
