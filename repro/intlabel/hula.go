package intlabel

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo"
	wire "github.com/weft-telemetry/weft/wire/label"
)

// hula is HULA's probing in one switch, as far as the paper tells: every ToR
// sends a probe up all its links once per interval, and switches send it on, so
// that it comes to all other ToRs on all ways. A leaf sends what comes from a ToR
// to its other ToRs and its spines, and what comes from a spine to its ToRs; a
// spine sends it to all other leaves. Each switch adds its state.
//
// Probes are packets like others: they wait in the queues of user packets, and
// are lost where those are full.
type hula struct {
	fabric *topo.Fabric
	every  time.Duration
	phase  time.Duration // pointsOf a ToR's first probe
	size   int32         // pointsOf every probe; 0: headers and the states added so far
	sent   int           // by this switch, those of others included
}

// probeMark is the DSCP of probes; users' packets have 0.
const probeMark = 63

// Timers: a ToR waits for its phase, then for every interval.
const (
	begin = iota
	again
)

// probe runs HULA in all switches. ToRs do not know of each other's clocks: each
// begins at a random time of its own.
func (l lab) probe(n *sim.Network) (all []*hula) {
	rng := claim.Rand(l.seed, 2)
	for _, sw := range n.Switches() {
		h := &hula{fabric: n.Fabric(), every: l.interval, phase: time.Duration(rng.Int64N(int64(l.interval))), size: l.probeSize}
		sw.Attach(h)
		if h.tier(sw.ID) == 1 {
			sw.Start(h, begin)
		}
		all = append(all, h)
	}
	return all
}

// At is part of sim.Program.
func (h *hula) At(s sim.Stage) sim.Runner {
	if s == sim.StageIngress {
		return h
	}
	return nil
}

// Run is part of sim.Runner.
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

// flood sends the probe that came in, or else one of the switch's own, on.
func (h *hula) flood(c *sim.Context) {
	in, me := c.In(), h.tier(c.Switch.ID)
	if in != nil && me == 1 {
		return // its end
	}
	fell := in != nil && h.tier(in.Peer().Node) > me
	for _, out := range c.Switch.Ports() {
		next := h.tier(out.Peer().Node)
		if out == in || next == 0 || fell && next > me {
			continue // never back, to a host, or up again
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
