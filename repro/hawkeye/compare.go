package hawkeye

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
)

// comparison is one study of all methods that several claims share.
type comparison struct {
	mu      sync.Mutex
	options comparisonOptions
	done    bool
	all     findings
	costs   []costs // by method
	traces  int
}

// comparisonOptions are what a comparison depends on.
type comparisonOptions struct {
	seed    uint64
	quick   bool
	removed removed
}

var allMethods = []method{
	hawkeyeMethod, fullPolling, victimOnly, spiderMon, netSight, portsOnly, flowsOnly,
	publishedMethod, publishedFull, publishedVictimOnly, publishedPorts, publishedFlows,
}

// costs adds up the costs of a method over detections.
type costs struct {
	detections int
	bytes      float64 // of telemetry, per detection
	traffic    float64 // bytes on the fabric's links for it, per detection
	switches   float64 // that reported
	causal     int     // switches in the closures
	covered    int     // of them: reported
}

func (c *costs) mean(sum float64) float64 { return sum / float64(max(c.detections, 1)) }

// coverage returns the share of causal switches that reported.
func (c *costs) coverage() float64 { return share(c.covered, c.causal) }

// Bytes of what other systems send.
const (
	perFlow   = 36 // SpiderMon, per flow in a switch
	perHeader = 2  // SpiderMon, per packet
	perCard   = 15 // NetSight, per packet and hop
	perPoll   = 64 // a polling packet on the wire
)

// run runs the traces once for all claims with the same options.
func (c *comparison) run(ctx context.Context, o claim.Options) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := best(o)
	of := comparisonOptions{o.Seed, o.Quick, l.removed}
	if c.done && c.options == of {
		return nil
	}
	l.fullPolling = true
	c.traces, c.costs = o.Pick(40, 1), make([]costs, len(allMethods))
	s := study{lab: l, sets: single(rows), traces: c.traces, methods: allMethods}
	s.more = func(_ int, r *run, m method, list []diagnosis) {
		at := slices.IndexFunc(allMethods, func(x method) bool { return x.name == m.name })
		for i := range list {
			c.costs[at].addDetection(r, m, &list[i])
		}
	}
	var err error
	c.all, err = s.run(ctx, o)
	c.options, c.done = of, err == nil
	return err
}

// addDetection adds the costs of a detection.
func (c *costs) addDetection(r *run, m method, d *diagnosis) {
	c.detections++
	c.switches += float64(len(d.evidence.Reports))
	telemetry := float64(d.telemetryBytes())
	switch m.name {
	case netSight.name:
		telemetry = perCard * r.packetHops()
		c.traffic += telemetry
	case spiderMon.name:
		telemetry = 0
		for _, p := range d.evidence.Reports {
			telemetry += perFlow * float64(len(p.Flows))
		}
		c.traffic += perHeader * r.packetHops()
	case hawkeyeMethod.name, portsOnly.name:
		c.traffic += perPoll * float64(len(d.evidence.Reports))
	case victimOnly.name, flowsOnly.name:
		c.traffic += perPoll * float64(len(r.path(d.key)))
	}
	c.bytes += telemetry
	for _, id := range d.causal {
		c.causal++
		if slices.ContainsFunc(d.evidence.Reports, func(p *provenance.Report) bool { return p.Switch == id }) {
			c.covered++
		}
	}
}

// packetHops returns how many data packets switches sent, from their bytes.
func (r *run) packetHops() float64 {
	sum := model.Bytes(0)
	for _, sw := range r.net.Switches() {
		for _, p := range sw.Ports() {
			sum += p.TxData
		}
	}
	return float64(sum) / float64(r.net.MaxFrame())
}

// rows returns the tallies of a method, by row.
func (c *comparison) rows(m method) (list []tally) {
	at := slices.IndexFunc(allMethods, func(x method) bool { return x.name == m.name })
	for set := range rows {
		list = append(list, c.all[set][at][0])
	}
	return list
}

func (c *comparison) cost(m method) *costs {
	return &c.costs[slices.IndexFunc(allMethods, func(x method) bool { return x.name == m.name })]
}

// means returns the mean precision and recall of a method over all rows.
func (c *comparison) means(m method) (precision, recall float64) {
	for _, t := range c.rows(m) {
		precision += t.precision() / float64(len(rows))
		recall += t.recall() / float64(len(rows))
	}
	return precision, recall
}

// accuracy returns a table and a plot of some methods.
func (c *comparison) accuracy(methods []method) (claim.Table, claim.Plot) {
	t := claim.Table{Title: "precision / recall", Header: append([]string{"method"}, rowNames()...)}
	chart := plot.Chart{Title: "precision", Groups: rowNames()}
	for _, m := range methods {
		row, s := []string{m.name}, plot.Series{Name: m.name}
		for _, x := range c.rows(m) {
			row = append(row, fmt.Sprintf("%.2f / %.2f", x.precision(), x.recall()))
			s.Y = append(s.Y, math.Min(x.precision(), x.recall()))
		}
		t.Row(row...)
		chart.Series = append(chart.Series, s)
	}
	chart.YTitle = "the lesser of precision and recall"
	return t, claim.Plot{Chart: chart}
}

func (c *comparison) notes(more ...string) []string {
	return append([]string{setting, scoring, fmt.Sprintf("%s of each anomaly, threshold 300 %%, epochs of 500 µs",
		plural.Count(uint64(c.traces), "trace"))}, more...)
}
