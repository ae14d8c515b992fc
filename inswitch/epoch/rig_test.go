package epoch

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/poll"
)

func flowKey(n int) model.FlowKey {
	return model.NewFlowKey(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 2}), uint16(n)), netip.MustParseAddrPort("10.1.0.2:4791"), model.UDP)
}

// rig is one switch of four ports, of which port 4 leads to a host. It is
// the host of the program.
type rig struct {
	*Program
	pkt   inswitch.Packet
	ev    inswitch.Event
	act   inswitch.Actions
	frame []byte
	route model.PortID
	back  model.PortID // of acknowledgements; 0: as route
	sent  []sent

	queued map[int]int32 // packets of 1000 bytes, by lane; nil: all queues are empty
}

// sent is a poll that the program passed on.
type sent struct {
	out  model.PortID
	flag poll.Flag
}

func (r *rig) Seq() uint32                     { return 0 }
func (r *rig) Labels() label.Block             { return label.Block{} }
func (r *rig) CanPushLabel(label.Params) error { return nil }

func (r *rig) AppendFrame(b []byte, n int) []byte {
	return append(b, r.frame[:min(n, len(r.frame))]...)
}

func (r *rig) Route(key *model.FlowKey) (model.PortID, bool) {
	if r.back != 0 && key.Src == flowKey(1).Dst {
		return r.back, true
	}
	return r.route, r.route != 0
}

func (r *rig) Queue(out model.PortID, class model.Priority) inswitch.Queue {
	n := r.queued[lane(out, class)]
	return inswitch.Queue{Packets: n, Bytes: model.Bytes(n) * 1000}
}

func newRig(t testing.TB, cfg Config) *rig {
	const rate = 8 * model.Gbps // a byte per ns
	p, err := New(cfg, inswitch.Device{ID: 9, Ports: []inswitch.Port{{Rate: rate}, {Rate: rate}, {Rate: rate}, {Rate: rate, FacesHost: true}}})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Program: p}
	r.pkt.Source = r
	r.ev = inswitch.Event{Packet: &r.pkt, Switch: r}
	return r
}

func (r *rig) show() {
	r.act.Reset()
	r.Observe(&r.ev, &r.act)
}

func (r *rig) packet(at time.Duration, in, out model.PortID, class model.Priority, key model.FlowKey, depth int32) {
	var zero model.FlowKey
	r.pkt.Key, r.pkt.Outer, r.pkt.Size, r.pkt.EtherType = &key, &key, 1000, packet.TypeIPv4
	if key == zero {
		r.pkt.EtherType = 0x0806
	}
	r.ev.Stage, r.ev.Now, r.ev.In, r.ev.Out, r.ev.Priority = inswitch.Enqueue, model.Time(at), in, out, class
	r.ev.Queue = inswitch.Queue{Packets: depth, Bytes: model.Bytes(depth) * 1000}
	r.show()
}

func (r *rig) pause(at time.Duration, port model.PortID, class model.Priority, d time.Duration) {
	r.ev.Stage, r.ev.Now, r.ev.In, r.ev.Out = inswitch.PFC, model.Time(at), port, 0
	r.ev.Pause = inswitch.Pause{Classes: 1 << class}
	r.ev.Pause.Time[class] = d
	r.show()
}

// handlePoll shows a polling packet and notes what was passed on.
func (r *rig) poll(at time.Duration, in model.PortID, p poll.Poll) {
	var none model.FlowKey
	r.pkt.Key, r.pkt.Outer, r.pkt.EtherType = &none, &none, poll.EtherType
	r.frame = p.AppendTo(make([]byte, packet.EthernetSize))
	r.ev.Stage, r.ev.Now, r.ev.In, r.ev.Out = inswitch.Ingress, model.Time(at), in, 0
	r.show()
	r.sent = nil
	for _, s := range r.act.Sends {
		var p poll.Poll
		if _, err := p.Parse(s.Content); err != nil || !s.Control || s.EtherType != poll.EtherType {
			panic(fmt.Sprintf("sent %+v, %v; want a poll by the control queue", s, err))
		}
		for _, out := range s.Ports {
			r.sent = append(r.sent, sent{out, p.Flag})
		}
	}
}

// reports fires the timers that are due and returns the chunks.
func (r *rig) reports(at time.Duration) (chunks []epoch.Chunk) {
	r.ev.Stage, r.ev.Now = inswitch.Timer, model.Time(at)
	r.show()
	for _, rep := range r.act.Reports {
		var c epoch.Chunk
		if _, err := c.Parse(slices.Clone(rep.Data)); err != nil {
			panic(err)
		}
		chunks = append(chunks, c)
	}
	return chunks
}

var request = poll.Poll{Layout: poll.Weft, Flag: poll.Victim, HopLimit: 8, Event: poll.Event{Host: 1, Number: 1}, Flow: flowKey(1)}

// answer is the content of a report.
type answer struct {
	Ports    []epoch.PortEpoch
	Meters   []epoch.Meter
	Flows    []epoch.Flow // of one flow, epoch and queue summed up
	Episodes []epoch.CongestionEpisode
}

func readAnswer(chunks []epoch.Chunk) (a answer) {
	sums := map[epoch.Flow]*epoch.Flow{}
	for i := range chunks {
		for r := chunks[i].Reader(); r.Next(); {
			switch r.Kind() {
			case epoch.KindPortEpoch:
				var p epoch.PortEpoch
				must(p.Parse(r.Record()))
				a.Ports = append(a.Ports, p)
			case epoch.KindMeter:
				var m epoch.Meter
				must(m.Parse(r.Record()))
				a.Meters = append(a.Meters, m)
			case epoch.KindCongestionEpisode:
				var w epoch.CongestionEpisode
				must(w.Parse(r.Record()))
				a.Episodes = append(a.Episodes, w)
			case epoch.KindFlow4, epoch.KindFlow6:
				var f epoch.Flow
				must(f.Parse(r.Record()))
				id := epoch.Flow{Epoch: f.Epoch, Out: f.Out, Priority: f.Priority, Key: f.Key}
				if sums[id] == nil {
					x := id
					x.First = f.First
					sums[id] = &x
				}
				s := sums[id]
				s.First, s.Last = min(s.First, f.First), max(s.Last, f.Last)
				s.Packets += f.Packets
				s.Paused += f.Paused
				s.Bytes += f.Bytes
				s.Depth += f.Depth
				s.PausedDepth += f.PausedDepth
			}
		}
	}
	for _, f := range sums {
		a.Flows = append(a.Flows, *f)
	}
	a.sort()
	return a
}

// since leaves out what is older than an epoch.
func (a *answer) since(oldest uint32) {
	a.Ports = slices.DeleteFunc(a.Ports, func(p epoch.PortEpoch) bool { return p.Epoch < oldest })
	a.Meters = slices.DeleteFunc(a.Meters, func(m epoch.Meter) bool { return m.Epoch < oldest })
	a.Flows = slices.DeleteFunc(a.Flows, func(f epoch.Flow) bool { return f.Epoch < oldest })
}

func (a *answer) sort() {
	slices.SortFunc(a.Ports, func(x, y epoch.PortEpoch) int {
		return cmp.Or(cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(x.Port, y.Port), cmp.Compare(x.Priority, y.Priority))
	})
	slices.SortFunc(a.Meters, func(x, y epoch.Meter) int {
		return cmp.Or(cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(x.In, y.In), cmp.Compare(x.Out, y.Out), cmp.Compare(x.Priority, y.Priority))
	})
	slices.SortFunc(a.Flows, func(x, y epoch.Flow) int {
		return cmp.Or(cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(x.Out, y.Out), cmp.Compare(x.Priority, y.Priority), x.Key.Compare(y.Key))
	})
	slices.SortFunc(a.Episodes, func(x, y epoch.CongestionEpisode) int {
		return cmp.Or(cmp.Compare(x.Port, y.Port), cmp.Compare(x.Priority, y.Priority))
	})
}

func must(_ int, err error) {
	if err != nil {
		panic(err)
	}
}
