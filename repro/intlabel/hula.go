package intlabel

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo"
	wire "github.com/weft-telemetry/weft/wire/label"
)

// hula is HULA's probing in one switch, as far as the paper describes it: every
// ToR sends a probe up all its links once per interval, and switches forward it,
// so that it reaches all other ToRs on all paths. A leaf forwards a probe from a
// ToR to its other ToRs and its spines, and one from a spine to its ToRs; a spine
// forwards it to all other leaves. Each switch adds its state.
//
// Probes are ordinary packets: they wait in the queues of user packets, and are
// dropped where those are full.
type hula struct {
	fabric *topo.Fabric
	every  time.Duration
	phase  time.Duration // of a ToR's first probe
	size   int32         // of every probe; 0: headers and the states added so far
	sent   int           // by this switch, including those forwarded
}

// probeMark is the DSCP of probes; users' packets have 0.
const probeMark = 63

// Timers: a ToR waits for its phase, then for every interval.
const (
	begin = iota
	again
)

// probe runs HULA in all switches. ToRs are not synchronized: each starts at a
// random time.
func (l lab) probe(n *sim.Network) (all []*hula) {
	rng := claim.Rand(l.seed, 2)
	for _, sw := range n.Switches() {
		h := &hula{
			fabric: n.Fabric(), every: l.interval, phase: time.Duration(rng.Int64N(int64(l.interval))),
			size: l.probeSize,
		}
		sw.Attach(h)
		if h.tier(sw.ID) == 1 {
			sw.Start(h, begin)
		}
		all = append(all, h)
	}
	return all
}

// At implements sim.Program.
func (h *hula) At(s sim.Stage) sim.Runner {
	if s == sim.StageIngress {
		return h
	}
	return nil
}

// Run implements sim.Runner.
func (h *hula) Run(c *sim.Context) {
	switch {
	case c.Stage == sim.StageTimer && c.Timer == begin:
		c.After(h, h.phase, again)
	case c.Stage == sim.StageTimer:
		c.After(h, h.every, again)
		h.flood(c)
	case c.Packet.DSCP == probeMark:
		h.flood(c)
		c.Consume()
	}
}

// flood forwards the probe that came in, or else sends one of the switch itself.
func (h *hula) flood(c *sim.Context) {
	in, me := c.In(), h.tier(c.Switch.ID)
	if in != nil && me == 1 {
		return // its end
	}
	fell := in != nil && h.tier(in.Peer().Node) > me
	for _, out := range c.Switch.Ports() {
		next := h.tier(out.Peer().Node)
		if out == in || next == 0 || fell && next > me {
			continue // not back, not to a host, not up again
		}
		var p *sim.Packet
		if in != nil {
			p = c.Clone()
		} else {
			p = c.NewPacket()
			p.Kind, p.DSCP, p.TTL, p.Size = sim.KindOther, probeMark, 64, frame+wire.OptionSize
		}
		if p.Size += wire.ItemSize; h.size > 0 {
			p.Size = h.size
		}
		h.sent++
		c.Send(p, out)
	}
}

func (h *hula) tier(id model.NodeID) int { return h.fabric.Node(id).Tier }
