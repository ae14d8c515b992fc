package preflight

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// checkFailures checks what single failures and a sample of double failures lead
// to. Failures with the same consequence are one finding.
func (c *checker) checkFailures(ctx context.Context) error {
	if len(c.fabric.Hosts()) < 2 {
		return nil
	}
	check := topo.NewFailureCheck(c.routes)
	singles := c.fabric.SingleFailures()
	doubles := c.fabric.DoubleFailures(c.opts.Doubles, c.opts.Seed)
	c.report.Singles, c.report.Doubles = len(singles), len(doubles)
	outages, err := c.outages(ctx, check, slices.Concat(singles, doubles))
	if err != nil {
		return err
	}
	known := c.addOutages(outages[:len(singles)], Warning, nil)
	c.addOutages(outages[len(singles):], Note, known)
	return nil
}

// outages finds what each failure leads to, on all CPUs, in the order of the
// failures. Routes are kept only of those that lead to something.
func (c *checker) outages(ctx context.Context, check *topo.FailureCheck, failures []topo.Failure) ([]topo.Outage, error) {
	out := make([]topo.Outage, len(failures))
	errs := make([]error, len(failures))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(failures) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				out[i], errs[i] = check.After(failures[i])
				if len(out[i].Cycles) == 0 && out[i].LostPairs == 0 {
					out[i].Routes = nil
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("failure of %s: %w", c.fabric.FailureName(failures[i]), err)
		}
	}
	return out, nil
}

// addOutages adds findings and returns what they were about. What is known is not
// repeated: two failures at once are no news where one of them is enough.
func (c *checker) addOutages(outages []topo.Outage, severity Severity, known map[string]bool) map[string]bool {
	about := make(map[string]bool)
	at := make(map[string]int) // index of the finding
	add := func(key string, o *topo.Outage, f Finding) {
		if known[key] {
			return
		}
		name := c.fabric.FailureName(o.Failure)
		if i, ok := at[key]; ok {
			c.report.Findings[i].Failures = append(c.report.Findings[i].Failures, name)
			return
		}
		about[key], at[key] = true, len(c.report.Findings)
		f.Severity, f.Failures = severity, []string{name}
		c.add(f)
	}
	for i := range outages {
		o := &outages[i]
		if c.lossless() {
			for _, cycle := range o.Cycles {
				add("cycle "+cycleKey(cycle), o, c.cycleFinding(o, cycle))
			}
		}
		if o.LostPairs > 0 && !c.containsKnown(o.Failure, known) {
			// Many double failures part hosts: one finding has them all.
			key := "lost"
			if severity == Warning {
				key += " " + c.fabric.FailureName(o.Failure)
				for _, part := range c.partNames(o.Failure) {
					about["part "+part] = true
				}
			}
			add(key, o, c.lostFinding(o))
		}
	}
	return about
}

// partNames names each switch and link of a failure.
func (c *checker) partNames(x topo.Failure) (names []string) {
	for _, id := range x.Switches {
		names = append(names, c.fabric.Node(id).Name)
	}
	if len(x.Switches) == 0 {
		for _, l := range x.Links {
			names = append(names, c.fabric.PortRef(c.fabric.Links()[l].A))
		}
	}
	return names
}

// containsKnown reports whether a part of a double failure parts hosts alone.
func (c *checker) containsKnown(x topo.Failure, known map[string]bool) bool {
	for _, id := range x.Switches {
		if known["part "+c.fabric.Node(id).Name] {
			return true
		}
	}
	return slices.ContainsFunc(x.Links, func(l int) bool {
		return known["part "+c.fabric.PortRef(c.fabric.Links()[l].A)]
	})
}

// cycleKey is the same wherever a cycle is entered.
func cycleKey(cycle []model.Port) string {
	sorted := slices.Clone(cycle)
	slices.SortFunc(sorted, func(a, b model.Port) int {
		return int(int64(a.Node)-int64(b.Node))<<16 + int(a.Port) - int(b.Port)
	})
	return fmt.Sprint(sorted)
}

func (c *checker) cycleFinding(o *topo.Outage, cycle []model.Port) Finding {
	var names, places []string
	for _, p := range cycle {
		names, places = append(names, c.fabric.PortName(p)), append(places, c.fabric.PortRef(p))
	}
	failure, routes := o.Failure, o.Routes
	return Finding{
		Rule: "buffer-cycle", Places: places,
		Text: fmt.Sprintf("without %s, routes have a cyclic buffer dependency of %d ports: %s; PFC can deadlock them",
			c.fabric.FailureName(failure), len(cycle), strings.Join(names, ", ")),
		Mend:  mends[topo.BufferCycle],
		prove: func() (*trial, error) { return c.cycleTrial(routes, failure, cycle) },
	}
}

func (c *checker) lostFinding(o *topo.Outage) Finding {
	name := c.fabric.FailureName(o.Failure)
	src, dst := c.fabric.Node(o.Src).Name, c.fabric.Node(o.Dst).Name
	failure, routes := o.Failure, o.Routes
	f := Finding{
		Rule: "no-fallback", Places: c.partNames(failure),
		Text: fmt.Sprintf("without %s, no route for %s, for example %s → %s: packets are dropped at %s",
			name, plural.Count(o.LostPairs, "ordered host pair"), src, dst, c.fabric.Node(o.Stops).Name),
		Mend: "add a second link or switch beside it",
	}
	if len(routes.Config().Overrides) > 0 {
		f.Mend += ", or a next hop to the static route"
	}
	f.prove = func() (*trial, error) { return c.lostTrial(failure, routes, src, dst), nil }
	return f
}
