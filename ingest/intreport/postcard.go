package intreport

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/keyed"
	"github.com/weft-telemetry/weft/wire/packet"
)

// pathHop is where a switch is on the path of a packet.
type pathHop struct {
	index uint8
	path  uint8 // the number of hops, 0 if not known
	known bool
}

// hopOf returns where a switch is that reports a packet, by the packet's TTL. That of a
// packet in a tunnel begins anew at the tunnel's start.
func hopOf(p *packet.Packet) pathHop {
	if p.Depth > 1 {
		return pathHop{}
	}
	index, known := keyed.HopIndex(p.Outer.TTL)
	return pathHop{index: index, known: known}
}

// stackHop returns where the switch is that added an entry to a stack: the last switch's
// is the first.
func stackHop(entry, entries int) pathHop {
	if entries > keyed.MaxHops {
		return pathHop{}
	}
	return pathHop{index: uint8(entries - 1 - entry), path: uint8(entries), known: true}
}

// emitPostcard emits what a switch measured of the packet as a postcard, by which
// path and latency are found by the key of the flow.
func (d *Decoder) emitPostcard(at model.Time, sw model.NodeID, m *intreport.Metadata, hop pathHop) bool {
	in := d.packet.Innermost()
	if d.out.Keyed == nil || !hop.known || sw > keyed.MaxPostcardSwitch || in.Key.IsZero() || !m.Has(intreport.BitHopLatency) {
		return false
	}
	card := keyed.Postcard{Switch: sw, Latency: time.Duration(m.HopLatency) * d.cfg.Tick, Time: d.reportTime(at, m)}
	if m.Has(intreport.BitQueue) {
		card.Queue = model.Bytes(m.QueueDepth) * d.cfg.Cell
	}
	d.stats.Postcards++
	d.out.Keyed(at, d.cards.Of(&in.Key, uint32(packet.SampleHash(0, &in.Key, uint16(in.ID), in.Seq)), hop.index, hop.path, card))
	return true
}
