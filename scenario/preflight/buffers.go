package preflight

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim/mmu"
)

// fibre is the propagation of light in glass, from which findings state a length.
const fibre = 5 * time.Nanosecond // per metre

// portKind is ports that are configured the same.
type portKind struct {
	rate       model.Rate
	delay      time.Duration
	have, want model.Bytes
}

// checkBuffers compares headroom with what links need, and ECN with PFC.
func (c *checker) checkBuffers(context.Context) error {
	if !c.lossless() || len(c.fabric.Hosts()) < 2 || len(c.fabric.Switches()) == 0 {
		return nil
	}
	alone := *c.s
	alone.Traffic, alone.Faults, alone.Telemetry, alone.Agents = nil, nil, nil, nil
	alone.Migrations, alone.Changes, alone.Services = nil, nil, nil
	session, err := scenario.Open(&alone, nil)
	if err != nil {
		// Only the buffer can still be wrong: everything else was read before.
		c.add(Finding{
			Rule: "buffer", Severity: Fault, Text: strings.TrimPrefix(err.Error(), "fabric: "),
			Mend: "shorten links, lower MTU or reserve, or use switches with a larger buffer",
		})
		return nil
	}
	headroom := make(map[portKind][]model.Port)
	ecn, least := make(map[model.Rate][]model.Port), make(map[model.Rate]model.Bytes) // least Xoff
	for _, id := range c.fabric.Switches() {
		n := c.fabric.Node(id)
		b := session.Network.Switch(id).BufferConfig()
		for i := range n.Ports {
			p := &n.Ports[i]
			at := model.Port{Node: id, Port: p.ID}
			k := portKind{p.Rate, p.Delay, b.Ports[i].Headroom, mmu.HeadroomFor(p.Rate, p.Delay, session.Network.MaxFrame())}
			if k.have < k.want {
				headroom[k] = append(headroom[k], at)
			}
			if kmin, ok := c.kmin(p.Rate); ok {
				if xoff := loneXoff(&b, i); kmin >= xoff {
					ecn[p.Rate] = append(ecn[p.Rate], at)
					least[p.Rate] = min(cmp.Or(least[p.Rate], xoff), xoff)
				}
			}
		}
	}
	for _, k := range sortedKinds(headroom) {
		c.add(c.headroomFinding(k, headroom[k]))
	}
	for _, rate := range slices.Sorted(maps.Keys(ecn)) {
		c.add(c.ecnFinding(rate, least[rate], ecn[rate]))
	}
	return nil
}

// kmin returns where ports of a rate begin to mark; false where no congestion
// control waits for marks, or none are made.
func (c *checker) kmin(rate model.Rate) (model.Bytes, bool) {
	curve, ok := c.s.Sim.ECNFor(rate)
	return curve.Kmin, ok && c.s.Sim.Congestion != nil
}

// loneXoff returns how many bytes of one ingress port are in the switch when its
// sender is paused, where nothing else is queued. A dynamic threshold is alpha of
// what is then free: q = alpha × (shared - q).
func loneXoff(b *mmu.Config, port int) model.Bytes {
	p := &b.Ports[port]
	if p.Xoff > 0 {
		return p.Xoff + b.Reserve
	}
	num, den := model.Bytes(p.Alpha.Num), model.Bytes(p.Alpha.Den)
	return b.SharedBytes()*num/(num+den) + b.Reserve
}

func sortedKinds(m map[portKind][]model.Port) []portKind {
	var list []portKind
	for k := range m {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b portKind) int {
		return slices.Compare([]int64{int64(a.rate), int64(a.delay), int64(a.want), int64(a.have)},
			[]int64{int64(b.rate), int64(b.delay), int64(b.want), int64(b.have)})
	})
	return list
}

// maxPlaces bounds the ports that a finding lists; its text has their number.
const maxPlaces = 16

func (c *checker) portRefs(ports []model.Port) (list []string) {
	for _, p := range ports[:min(len(ports), maxPlaces)] {
		list = append(list, c.fabric.PortRef(p))
	}
	return list
}

func (c *checker) headroomFinding(k portKind, ports []model.Port) Finding {
	return Finding{
		Rule: "headroom", Severity: Fault, Places: c.portRefs(ports),
		Text: fmt.Sprintf("headroom of %s on %s of %s and %s (about %.0f m of fibre), and up to %s arrive after a pause: the excess is dropped",
			model.FormatBytes(k.have), plural.Count(len(ports), "port"), model.FormatRate(k.rate), model.FormatDuration(k.delay),
			float64(k.delay)/float64(fibre), model.FormatBytes(k.want)),
		Mend:  fmt.Sprintf("set headroom of these ports to %d bytes or more (in scenarios: headroom: auto)", k.want),
		prove: func() (*trial, error) { return c.headroomTrial(ports) },
	}
}

func (c *checker) ecnFinding(rate model.Rate, xoff model.Bytes, ports []model.Port) Finding {
	kmin, _ := c.kmin(rate)
	return Finding{
		Rule: "ecn-above-pfc", Severity: Warning, Places: c.portRefs(ports),
		Text: fmt.Sprintf("Kmin is %s on %s of %s, and PFC pauses a lone sender at %s: it is paused before it is marked",
			model.FormatBytes(kmin), plural.Count(len(ports), "port"), model.FormatRate(rate), model.FormatBytes(xoff)),
		Mend:  fmt.Sprintf("set Kmin of these ports well below %s, or raise Xoff (alpha)", model.FormatBytes(xoff)),
		prove: func() (*trial, error) { return c.ecnTrial(ports) },
	}
}
