package proof

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
)

// remedy is what an operator could do about a verdict, in a rebuilt run.
type remedy struct {
	limit    float64       // of the culprits' rate, as a share; 0: none
	disabled bool          // ports to the named hosts are down
	watchdog time.Duration // after that long, pauses of named hosts are ignored; 0: never
	mended   bool          // all flows take the intended routes
	rehash   uint64        // added to the seed of ECMP; 0: flows take the recorded paths
	headroom bool          // what each link needs, instead of the configured one
}

// limitedTo is the share of its rate at which a culprit is limited.
const limitedTo = 0.25

// hashes is the number of other ECMP seeds that are tried. Any one may be lucky.
const hashes = 5

// remedies simulates those that fit what the verdict names and the fabric has.
func (p *prover) remedies(ctx context.Context, fit fitted, rebuilt *outcome) ([]Trial, error) {
	named := p.describe(p.c.Named)
	list := []Trial{}
	try := func(name, what string, r remedy) error {
		o, err := p.run(ctx, setup{name: name, about: "A remedy: " + what + ".", fitted: fit, remedy: r})
		if err == nil {
			list = append(list, newTrial(name, what, o))
		}
		return err
	}
	if len(p.c.Named.Flows) > 0 {
		if err := try("limited", "with "+named+" at a quarter of the rate", remedy{limit: limitedTo}); err != nil {
			return nil, err
		}
		t, err := p.rehashed(ctx, fit)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	if len(p.c.Named.Hosts) > 0 {
		hosts := strings.Join(p.c.Named.Hosts, ", ")
		// Without its own host the packet is not late, but lost.
		if !p.isNamed(p.world.victim.src) && !p.isNamed(p.world.victim.dst) {
			if err := try("disabled", "with the port to "+hosts+" down", remedy{disabled: true}); err != nil {
				return nil, err
			}
		}
		// A host that is fitted as a slow receiver pauses on its own account, in bursts that no
		// watchdog takes for a storm.
		if fit.drain == 0 {
			after := cmp.Or(p.c.Watchdog, DefaultWatchdog)
			what := fmt.Sprintf("with a PFC watchdog that ignores pauses of %s after %v", hosts, after)
			if err := try("watchdog", what, remedy{watchdog: after}); err != nil {
				return nil, err
			}
		}
	}
	if p.deviates() {
		if err := try("mended", "with all flows on the intended routes", remedy{mended: true}); err != nil {
			return nil, err
		}
	}
	if p.sim.Headroom > 0 && rebuilt.dropped && p.headroomFits() {
		if err := try("headroom", "with the headroom that each link needs", remedy{headroom: true}); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// rehashed simulates other ECMP hashes, and returns the middle one.
func (p *prover) rehashed(ctx context.Context, fit fitted) (Trial, error) {
	var all []Trial
	for i := range uint64(hashes) {
		o, err := p.run(ctx, setup{name: "rehashed", about: "A remedy: another ECMP hash.", fitted: fit, remedy: remedy{rehash: i + 1}})
		if err != nil {
			return Trial{}, err
		}
		all = append(all, newTrial("rehashed", fmt.Sprintf("with another ECMP hash: the middle of %d", hashes), o))
	}
	slices.SortStableFunc(all, func(a, b Trial) int { return cmp.Compare(a.LateNs, b.LateNs) })
	return all[len(all)/2], nil
}

// headroomFits reports whether the buffer is large enough for the headroom that links need.
func (p *prover) headroomFits() bool {
	text, err := p.scenarioText(setup{name: "headroom", fitted: fitted{speed: 1}, remedy: remedy{headroom: true}})
	if err != nil {
		return false
	}
	s, err := scenario.Parse("headroom.yaml", []byte(text))
	if err != nil {
		return false
	}
	_, err = scenario.Open(s, nil)
	return err == nil
}

// deviates reports whether recorded paths are not those of the intended routes.
func (p *prover) deviates() bool {
	return len(p.victimPath.routes) > 0 || slices.ContainsFunc(p.paths, func(x path) bool { return len(x.routes) > 0 })
}

// isNamed reports whether the verdict names a host.
func (p *prover) isNamed(id model.NodeID) bool { return slices.Contains(p.c.Named.Hosts, p.name(id)) }

// watch returns what a watchdog leaves of the pauses of named hosts: of each that lasts
// longer, its detection time. Pauses that touch are one: a record ends with its epoch.
func (r *remedy) watch(pauses []hostPause, isNamed func(model.NodeID) bool) []hostPause {
	if r.watchdog == 0 {
		return pauses
	}
	sorted := slices.Clone(pauses)
	slices.SortStableFunc(sorted, func(a, b hostPause) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.priority, b.priority), cmp.Compare(a.from, b.from))
	})
	var out []hostPause
	for _, h := range sorted {
		if n := len(out); n > 0 && out[n-1].host == h.host && out[n-1].priority == h.priority && h.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, h.to)
			continue
		}
		out = append(out, h)
	}
	for i := range out {
		if isNamed(out[i].host) {
			out[i].to = min(out[i].to, out[i].from+r.watchdog)
		}
	}
	return out
}
