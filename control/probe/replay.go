package probe

import (
	"fmt"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Replay recovers the trace of a packet that no switch mirrored, or whose mirrors
// were lost: the packet is injected again where its source is attached, marked, a
// few times.
type Replay struct {
	host   model.NodeID
	packet prober.Packet
	count  uint32
	best   *trace.Trace
	seen   int
}

// Replay makes the question about packets of a flow.
func (d *Scheduler) Replay(now model.Time, flow model.FlowKey, count uint32) (*Replay, error) {
	return d.replay(now, prober.Packet{Key: flow}, count)
}

// ReplayFrame is Replay of a captured frame: with the innermost header's DSCP,
// ECN, TTL and IPID, and TCP's flags and numbers. Its payload is not replayed.
func (d *Scheduler) ReplayFrame(now model.Time, frame []byte, count uint32) (*Replay, error) {
	var p packet.Packet
	if err := p.Parse(frame); err != nil {
		return nil, fmt.Errorf("probe: replay a frame: %w", err)
	}
	in := p.Innermost()
	if in.Key.IsZero() || in.Flags.Has(packet.NoPorts) {
		return nil, fmt.Errorf("probe: replay a frame of %v, want an IP packet with its ports", in.Key)
	}
	one := prober.Packet{Key: in.Key, TTL: in.TTL, DSCP: in.DSCP(), ECN: in.ECN(), IPID: uint16(in.ID)}
	if in.Key.Proto == model.TCP {
		one.TCPFlags, one.Seq = in.TCPFlags, in.Seq
	}
	return d.replay(now, one, count)
}

func (d *Scheduler) replay(now model.Time, one prober.Packet, count uint32) (*Replay, error) {
	r := d.intent.At(now)
	first := r.ExpectedLastHops(one.Key.Src)
	if len(first) == 0 {
		return nil, fmt.Errorf("probe: %v is not attached to a switch, want a source in the fabric", one.Key.Src)
	}
	if count == 0 {
		return nil, fmt.Errorf("probe: no probes, want at least one")
	}
	host, along, err := injectionPath(r, first[0])
	if err != nil {
		return nil, err
	}
	one.Tunnels = along
	if err := one.Check(); err != nil {
		return nil, err
	}
	return &Replay{host: host, packet: one, count: count}, nil
}

func (q *Replay) plan() (model.NodeID, []prober.Packet, uint32) {
	return q.host, []prober.Packet{q.packet}, q.count
}

// addTrace keeps the most complete trace: the one with most mirrors.
func (q *Replay) addTrace(_ uint32, t *trace.Trace) {
	q.seen++
	if q.best == nil || len(t.Hops) > len(q.best.Hops) {
		q.best = t.Clone()
	}
}

// Heard is part of Question.
func (q *Replay) Heard() uint32 { return uint32(q.seen) }

// Answer returns the most complete trace, nil if there is none, and the number of
// traces.
func (q *Replay) Answer() (*trace.Trace, int) { return q.best, q.seen }
