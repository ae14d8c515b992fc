package preflight

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/fairshare"
)

const (
	// collisionSlowdown is the forecast from which collisions are worth a finding.
	collisionSlowdown = 1.2
	// maxQueuePairs bounds a job that is forecast.
	maxQueuePairs = 1 << 16
	// triedSeeds is how many other seeds of ECMP are tried for a better spread.
	triedSeeds = 16
)

// checkJobs forecasts the collisions of each job of the scenario's traffic: all of
// its queue pairs send at once, alone.
func (c *checker) checkJobs(context.Context) error {
	jobs, err := c.s.QueuePairs()
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if err := c.checkJob(j.Name, j.Flows); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) checkJob(name string, flows []fairshare.Flow) error {
	if len(flows) > maxQueuePairs {
		c.add(Finding{
			Rule: string(topo.Unchecked), Severity: Warning,
			Text: fmt.Sprintf("%s has %d queue pairs, more than the %d that are forecast", name, len(flows), maxQueuePairs),
		})
		return nil
	}
	routes, _, err := c.actualRoutes()
	if err != nil {
		return err
	}
	fc := fairshare.New(routes, flows)
	worst := fc.Worst()
	if worst < 0 || fc.Flows[worst].NoPath || fc.Flows[worst].Slowdown() < collisionSlowdown {
		return nil
	}
	slowdown := fc.Flows[worst].Slowdown()
	link := c.sharedLink(fc, worst)
	var together []fairshare.Flow
	for i := range fc.Flows {
		if slices.Contains(fc.Flows[i].Links, link) {
			together = append(together, flows[i])
		}
	}
	slow := 0
	for i := range fc.Flows {
		if fc.Flows[i].Slowdown() >= collisionSlowdown {
			slow++
		}
	}
	egress := fairshare.Egress(c.fabric, link)
	f := Finding{
		Rule: "collision", Severity: Warning, Places: []string{c.fabric.PortRef(egress)},
		Text: fmt.Sprintf("%d of %s of %s collide: %d share %s, and the slowest is forecast at %.1f times its time without collisions",
			slow, plural.Count(len(flows), "queue pair"), name, len(together), c.fabric.PortName(egress), slowdown),
		Mend: "use more queue pairs for each connection, or other source ports",
	}
	seed, better, err := c.betterSeed(routes, flows, slowdown)
	if err != nil {
		return err
	}
	if better < slowdown {
		f.Mend += fmt.Sprintf(", or another ECMP seed (with %d the slowest takes %.1f times)", seed, better)
	}
	f.prove = func() (*trial, error) { return c.jobTrial(routes, together) }
	c.add(f)
	return nil
}

// sharedLink returns the link that holds a flow back: the one that is full and
// shared by most, not counting those to hosts.
func (c *checker) sharedLink(fc *fairshare.Forecast, flow int) int {
	links := fc.Flows[flow].Links
	best, most := links[0], 0
	for _, l := range links[1:max(len(links)-1, 1)] {
		n := 0
		for i := range fc.Flows {
			if slices.Contains(fc.Flows[i].Links, l) {
				n++
			}
		}
		full := fc.Load[l] > 0.999*float64(c.fabric.Links()[l/2].Rate)
		if full && n > most {
			best, most = l, n
		}
	}
	return best
}

// betterSeed tries other seeds of ECMP and returns the best.
func (c *checker) betterSeed(routes *topo.Routes, flows []fairshare.Flow, now float64) (seed uint64, best float64, err error) {
	best = now
	for try := uint64(1); try <= triedSeeds; try++ {
		cfg := routes.Config()
		cfg.Seed = try
		r, err := topo.NewRoutes(c.fabric, cfg)
		if err != nil {
			return 0, 0, err
		}
		fc := fairshare.New(r, flows)
		if s := fc.Flows[fc.Worst()].Slowdown(); s < best-1e-9 {
			seed, best = try, s
		}
	}
	return seed, best, nil
}

// jobTrial has the queue pairs that share a link send at once.
func (c *checker) jobTrial(routes *topo.Routes, flows []fairshare.Flow) (*trial, error) {
	flows = flows[:min(len(flows), 64)]
	fc := fairshare.New(routes, flows)
	var list []flow
	for i := range flows {
		dst := routes.Owners(flows[i].Key.Dst)
		if len(dst) != 1 || flows[i].Key.Proto != model.UDP {
			return nil, fmt.Errorf("flow %v is not one of RoCEv2 between two hosts", flows[i].Key)
		}
		list = append(list, flow{src: flows[i].Src, dst: dst[0], port: flows[i].Key.SrcPort, bytes: 4 * model.MB, congested: true})
	}
	t := collisionTrial(fc.Flows[fc.Worst()].Slowdown(), list)
	if _, same, err := c.actualRoutes(); err == nil && same {
		t.faults = []string{"{kind: hash-polarization}"}
	}
	return t, nil
}
