package sflow

import (
	"math"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/sflow"
)

// packetSample makes a sample of a flow sample or a drop notification.
func (d *decoder) packetSample(at model.Time, sw model.NodeID) {
	s := &d.sample
	in, inKnown := d.interfaceOf(sw, s.In)
	out, outKnown := d.interfaceOf(sw, s.Out)
	source, isPort := d.countLost(sw, s)
	switch {
	case !inKnown && !outKnown, !inKnown && out == 0, !outKnown && in == 0:
		d.stats.unknownPort++
		return
	case in == 0 && out == 0 && s.Kind == sflow.Flow && s.Out.Format != sflow.Dropped:
		d.stats.otherInterface++
		return
	}
	m := &d.made
	*m = portstat.Sample{Node: sw, In: in, Out: out, At: at, Source: portstat.SFlow, Rate: max(s.Rate, 1)}
	switch {
	case s.Kind == sflow.Drop:
		m.Drop, m.Has, m.Rate = reasonOf(s.Reason, string(s.Trap)), portstat.HasDrop, 1
	case s.Out.Format == sflow.Dropped:
		m.Drop, m.Has = reasonOf(sflow.Reason(s.Out.Value), ""), portstat.HasDrop
	}
	if s.Has.All(sflow.HasPacket) {
		d.parsePacket(m)
	}
	d.addQueue(m)
	if isPort && s.Kind == sflow.Flow {
		d.addPool(m, source)
	}
	d.stats.used++
	if d.out.Sample != nil {
		d.out.Sample(m)
	}
	d.emitLabel(at, m)
}

// parsePacket adds what the sampled header says.
func (d *decoder) parsePacket(m *portstat.Sample) {
	p := &d.sample.Packet
	m.Bytes = p.Length
	var err error
	switch p.Protocol {
	case sflow.HeaderEthernet:
		err = d.packet.Parse(p.Header)
	case sflow.HeaderIPv4, sflow.HeaderIPv6:
		err = d.packet.ParseIP(p.Header)
	default:
		return
	}
	if err != nil || d.packet.Depth == 0 {
		return // not IP, or too short: the bytes count, the flow is unknown
	}
	m.Flow = d.packet.Innermost().Key
	if d.packet.Tags > 0 {
		m.Priority, m.Has = model.Priority(d.packet.VLAN.PCP), m.Has|portstat.HasPriority
	}
}

// addQueue adds priority, queue and delay. The egress queue names the class that PFC
// pauses; the priority of the tag does so where there is none.
func (d *decoder) addQueue(m *portstat.Sample) {
	s := &d.sample
	if s.Has.All(sflow.HasSwitched) && s.Switched.OutVLAN != 0 && s.Switched.OutPriority < portstat.NumClasses {
		m.Priority, m.Has = model.Priority(s.Switched.OutPriority), m.Has|portstat.HasPriority
	}
	if s.Has.All(sflow.HasQueue) && s.Queue < portstat.NumClasses {
		m.Priority, m.Has = model.Priority(s.Queue), m.Has|portstat.HasPriority
	}
	if s.Has.All(sflow.HasDepth) {
		m.QueueDepth, m.Has = model.Bytes(s.Depth), m.Has|portstat.HasQueueDepth
	}
	if s.Has.All(sflow.HasDelay) {
		m.Delay, m.Has = s.Delay, m.Has|portstat.HasDelay
	}
}

// emitLabel reports the queue of a sample's egress port as a label, which it is: the
// state of a port as one packet met it.
func (d *decoder) emitLabel(at model.Time, m *portstat.Sample) {
	if m.Out == 0 || m.Has&(portstat.HasQueueDepth|portstat.HasDelay) == 0 || d.out.Label == nil {
		return
	}
	it := label.Item{
		Switch: m.Node, Ingress: m.In, Egress: m.Out, Time: at, Latency: m.Delay, Queue: uint8(m.Priority),
		EnqueueDepth: m.QueueDepth, DequeueDepth: m.QueueDepth,
	}
	e := label.Export{Switch: m.Node, Time: at, Key: m.Flow}
	d.label = e.AppendWithLabel(d.label[:0], it, label.Option{NextHeader: model.UDP, MaxHop: label.DefaultMaxHop})
	d.out.Label(at, d.label)
}

// countLost adds what the agent says that it lost of a source since the last sample
// of it. It returns the port that the source is, if it is one.
func (d *decoder) countLost(sw model.NodeID, s *sflow.Sample) (id model.PortID, isPort bool) {
	if s.Source.Class != 0 {
		return 0, false
	}
	id, known := d.names.PortByIndex(sw, s.Source.Index)
	if !known || id == 0 {
		return 0, false
	}
	p := d.port(model.Port{Node: sw, Port: id})
	lost := &p.lost[s.Kind]
	if grown := s.Lost - lost.total; lost.known && grown < math.MaxUint32/2 {
		d.stats.lostByAgent += uint64(grown)
	}
	lost.total, lost.known = s.Lost, true
	return id, true
}

// oldPool is by how many packets a pool may be below the one before it in a datagram that
// another has overtaken. One that is further below has begun anew.
const oldPool = 1 << 20

// addPool adds how many packets the sampler of a port has seen, of one that samples what comes
// in. Agents that see samples alone, as hsflowd on Linux, multiply them by the rate: that is an
// estimate, grows by multiples of the rate, and is left out.
func (d *decoder) addPool(m *portstat.Sample, source model.PortID) {
	s, p := &d.sample, &d.port(model.Port{Node: m.Node, Port: source}).pool
	if source != m.In {
		p.sent = true
	}
	grown := s.Pool - p.last
	switch {
	case p.known && -grown < oldPool:
		return // an older sample, or the same
	case !p.known || grown > math.MaxUint32/2:
		p.last, p.total, p.known = s.Pool, uint64(s.Pool), true
		return
	}
	p.last, p.total = s.Pool, p.total+uint64(grown)
	if !p.sent && grown%m.Rate != 0 {
		m.Pool, m.Has = p.total, m.Has|portstat.HasPool
	}
}

// traps are devlink's names of drops that notifications of Linux switches have instead of a
// number.
var traps = map[string]portstat.Reason{
	"tail_drop": portstat.NoBuffer, "early_drop": portstat.NoBuffer, "ecn_mark": portstat.NoBuffer,
	"blackhole_route": portstat.BlackholeRoute, "blackhole_nexthop": portstat.BlackholeRoute,
	"ipv4_lpm_miss": portstat.NoRoute, "ipv6_lpm_miss": portstat.NoRoute, "reject_route": portstat.NoRoute, "unresolved_neigh": portstat.NoRoute,
	"ttl_value_is_too_small": portstat.TTLExpired, "mtu_value_is_too_small": portstat.MTUExceeded,
	"ingress_flow_action_drop": portstat.ACLDrop, "egress_flow_action_drop": portstat.ACLDrop,
}

// reasonOf maps a reason of sFlow, or a trap where it is unknown.
func reasonOf(r sflow.Reason, trap string) portstat.Reason {
	switch r {
	case sflow.NoBufferSpace, sflow.RED, sflow.TrafficShaping, sflow.UnknownBuffer:
		return portstat.NoBuffer
	case sflow.NetUnreachable, sflow.HostUnreachable, sflow.NetUnknown, sflow.HostUnknown, sflow.UnresolvedNeighbour:
		return portstat.NoRoute
	case sflow.BlackholeRoute, sflow.BlackholeNeighbour:
		return portstat.BlackholeRoute
	case sflow.TTLExceeded:
		return portstat.TTLExpired
	case sflow.ACL, sflow.NetProhibited, sflow.HostProhibited, sflow.CommunicationProhibited:
		return portstat.ACLDrop
	case sflow.PacketTooBig, sflow.FragmentationNeeded:
		return portstat.MTUExceeded
	case sflow.UnknownReason:
		return traps[trap]
	}
	if r > sflow.PacketTooBig && r < sflow.UnknownBuffer {
		return portstat.BadHeader
	}
	return portstat.UnknownReason
}

// port returns the state of a port of the topology.
func (d *decoder) port(id model.Port) *port {
	p := d.ports[id]
	if p == nil {
		p = &port{}
		d.ports[id] = p
	}
	return p
}

// port is what is remembered of a port.
type port struct {
	pool struct {
		last  uint32 // as received
		total uint64 // beyond 32 bits
		known bool
		sent  bool // it samples packets that are sent, too
	}
	lost [sflow.Drop + 1]struct {
		total uint32
		known bool
	}
	counted    bool
	seq        uint32
	generation uint32
	totals     [words]uint64 // of 32-bit counters, without wraps
}
