package sflow

import (
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/reading"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/sflow"
)

// stats are the counters of a decoder.
// samples = used + unknownPort + otherInterface + otherFormat + those that made no
// reading.
type stats struct {
	samples, used        uint64
	malformed            uint64 // datagrams or samples
	denied, unknownAgent uint64 // datagrams
	subAgents            uint64 // datagrams beyond maxSubAgents
	missing              uint64 // datagrams, by sequence number
	lostByAgent          uint64 // samples
	unknownPort          uint64
	otherInterface       uint64
	otherFormat          uint64
	resets               uint64 // of agents that restarted, by port
	clock                uint64
}

// decoder decodes datagrams. All of its state is about ports of the topology and a
// few sub-agents of each switch, however many agents send.
type decoder struct {
	out      source.Output
	names    *identity.Table
	switches map[model.NodeID]*source.Switch
	readings *reading.Tracker
	agents   map[agentKey]*agent
	ports    map[model.Port]*port
	stats    stats

	reader sflow.Reader
	sample sflow.Sample
	packet packet.Packet
	made   portstat.Sample
	read   portstat.Reading
	label  []byte
}

func newDecoder(f *source.Fabric, out source.Output) *decoder {
	d := &decoder{
		out: out, names: f.Identity, switches: map[model.NodeID]*source.Switch{},
		agents: map[agentKey]*agent{}, ports: map[model.Port]*port{},
	}
	for i := range f.Switches {
		d.switches[f.Switches[i].ID] = &f.Switches[i]
	}
	d.readings = reading.NewTracker(portstat.SFlow, func(p model.Port) model.Rate { return d.switches[p.Node].Rate(p.Port) })
	return d
}

// Decode is part of source.Decoder.
func (d *decoder) Decode(at model.Time, from netip.AddrPort, datagram []byte) bool {
	if d.reader.Reset(datagram) != nil {
		d.stats.malformed++
		return false
	}
	src := from.Addr().Unmap()
	sw, known := d.names.NodeByAddr(d.reader.Header.Agent)
	if !known { // agents behind a loopback address of their own
		sw, known = d.names.NodeByAddr(src)
	}
	switch {
	case !known:
		d.stats.unknownAgent++
		d.refuse(src, translate.UnknownReporter)
		return false
	case !d.switches[sw].SendsFrom(src):
		d.stats.denied++
		d.refuse(src, translate.AddressNotAllowed)
		return false
	}
	a := d.trackAgent(at, sw, src)
	if a == nil {
		return false
	}
	used := d.stats.used
	for {
		more, err := d.reader.Next(&d.sample)
		if err != nil {
			d.stats.malformed++
			if more {
				continue
			}
		}
		if !more {
			return d.stats.used > used
		}
		d.stats.samples++
		switch d.sample.Kind {
		case sflow.Flow, sflow.Drop:
			d.packetSample(at, sw)
		case sflow.Count:
			d.counterSample(at, sw, a)
		default:
			d.stats.otherFormat++
		}
	}
}

func (d *decoder) refuse(from netip.Addr, why translate.Refusal) {
	if d.out.Refused != nil {
		d.out.Refused(from, why, 0)
	}
}

// agentKey is a sub-agent, which numbers its own datagrams.
type agentKey struct {
	node model.NodeID
	sub  uint32
}

// agent is the newest datagram of a sub-agent.
type agent struct {
	from   netip.Addr
	last   model.Time
	next   uint32 // sequence number
	uptime time.Duration
	// start is when the agent started, by this machine's clock; it changes at a
	// restart alone.
	start model.Time
	// generation counts restarts.
	generation uint32
}

const (
	// maxSubAgents is how many sub-agents of a switch are followed: one per line card.
	maxSubAgents = 32
	// window is the longest gap that counts as loss, and how late a datagram may be.
	// Numbers further off are those of an agent that has restarted.
	window = 8192
	// rebindAfter is how long an agent must have been silent before another address may
	// continue its numbers. Until then a stranger's numbers are not looked at.
	rebindAfter = 10 * time.Second
	// maxDrift is how far an agent's uptime and this machine's clock may diverge:
	// agents hold samples back for up to a second.
	maxDrift = 2 * time.Second
)

// trackAgent counts missing datagrams and notices restarts.
func (d *decoder) trackAgent(at model.Time, sw model.NodeID, from netip.Addr) *agent {
	h := &d.reader.Header
	key := agentKey{sw, h.SubAgent}
	a := d.agents[key]
	if a == nil {
		if d.subAgents(sw) >= maxSubAgents {
			d.stats.subAgents++
			return nil
		}
		a = &agent{from: from, last: at, next: h.Seq + 1, uptime: h.Uptime, start: at.Add(-h.Uptime)}
		d.agents[key] = a
		return a
	}
	if a.from != from {
		if at.Sub(a.last) < rebindAfter {
			return a
		}
		a.from = from
	}
	restarted := false
	switch ahead := h.Seq - a.next; {
	case ahead < window:
		d.stats.missing += uint64(ahead)
		a.next = h.Seq + 1
	case -ahead <= window && h.Uptime+maxDrift >= a.uptime: // late
	default:
		restarted, a.next = true, h.Seq+1
	}
	if h.Uptime+maxDrift < a.uptime {
		restarted, a.next = true, h.Seq+1
	}
	switch start := at.Add(-h.Uptime); {
	case restarted:
		a.generation++
		a.start = start
	case start.Sub(a.start).Abs() > maxDrift:
		d.stats.clock++
		a.start = start
	}
	a.last, a.uptime = at, h.Uptime
	return a
}

// subAgents is how many sub-agents a switch has.
func (d *decoder) subAgents(sw model.NodeID) (n int) {
	if len(d.agents) < maxSubAgents {
		return 0
	}
	for k := range d.agents {
		if k.node == sw {
			n++
		}
	}
	return n
}

// sampledAt is when the samples of the present datagram were taken, as far as is
// known: by the agent's uptime where it agrees with this machine's clock, which is
// free of the network's jitter.
func (a *agent) sampledAt(at model.Time, uptime time.Duration) model.Time {
	own := a.start.Add(uptime)
	if own.Sub(at).Abs() > maxDrift {
		return at
	}
	return own
}

// interfaceOf returns the port of an ifIndex; known is false if nothing is known of it.
func (d *decoder) interfaceOf(sw model.NodeID, i sflow.Interface) (p model.PortID, known bool) {
	index, ok := i.Known()
	if !ok {
		return 0, true // the agent does not know, or several
	}
	return d.names.PortByIndex(sw, index)
}
