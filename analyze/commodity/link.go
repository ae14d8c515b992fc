package commodity

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// linkSums are the packets of one direction of a link as both ends count them,
// since both began to.
type linkSums struct{ sent, received endSums }

// endSums is one end's part.
type endSums struct {
	from, to model.Time
	packets  uint64
	bytes    uint64
}

// maxLinkTime is how long packets are summed up: clocks drift, and a fault that
// starts later must still show.
const maxLinkTime = 10 * time.Second

// addLink adds a reading to both directions of its link.
func (a *Analyzer) addLink(r *portstat.Reading) {
	if peer := a.peer(r.Port); !r.Has.All(portstat.HasPackets|portstat.HasBytes) || a.isHost(peer.Node) {
		return
	}
	a.linkOf(r.Port).sent.add(r, r.TxPackets, r.TxBytes)
	broken := r.FCSErrors // packets that arrived, and are a finding of their own
	a.linkOf(a.peer(r.Port)).received.add(r, r.RxPackets+broken, r.RxBytes)
}

func (a *Analyzer) linkOf(sender model.Port) *linkSums {
	l := a.links[sender]
	if l == nil {
		l = &linkSums{}
		a.links[sender] = l
	}
	return l
}

// add continues the sums, or starts them again where readings are missing.
func (e *endSums) add(r *portstat.Reading, packets, bytes uint64) {
	if e.to != r.From {
		*e = endSums{from: r.From}
	}
	e.to = r.To
	e.packets, e.bytes = e.packets+packets, e.bytes+bytes
}

// findLeaks finds links that deliver fewer packets than were sent, without an error
// at either end. The two ends are not read at the same instant: what may have passed
// between is no loss.
func (a *Analyzer) findLeaks(id model.NodeID) (list []finding) {
	for i := range a.fabric.Node(id).Ports {
		at := model.Port{Node: id, Port: model.PortID(i + 1)}
		l := a.links[at]
		if l == nil || l.sent.packets == 0 || l.sent.to == 0 || l.received.to == 0 {
			continue
		}
		s, r := &l.sent, &l.received
		apart := (s.from - r.from).Sub(0).Abs() + (s.to - r.to).Sub(0).Abs()
		rate := a.fabric.Port(at).Rate
		size := max(float64(s.bytes)/float64(s.packets), 64)
		// All of the link's rate may have passed in the time between, and a few packets
		// are on the wire.
		slack := float64(rate)/8/size*(apart+2*a.fabric.Port(at).Delay).Seconds() + 16
		lost := float64(s.packets) - float64(r.packets)
		overlap := min(s.to, r.to).Sub(max(s.from, r.from))
		if lost > slack && lost > float64(s.packets)/1e4 && overlap > 2*apart {
			f := a.newFinding(leaking, at, 0)
			f.packets, f.sent, f.from, f.to = uint64(lost), s.packets, s.from, s.to
			f.reason = fmt.Sprintf("%d packets sent, %d received", s.packets, r.packets)
			f.strength = ambiguous // one of the two counts may be wrong
			list = append(list, f)
		}
		if s.to.Sub(s.from) > maxLinkTime {
			*l = linkSums{}
		}
	}
	return list
}
