package probe

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
)

// Series finds the fate of custom packets.
type Series struct {
	host   model.NodeID
	packet prober.Packet
	answer SeriesAnswer
}

// SeriesAnswer counts the probes that were seen, by fate.
type SeriesAnswer struct {
	Host                                     model.NodeID
	Sent, Seen, Arrived, Lost, Looped, Other uint64
	Ends                                     []End          // where they were seen last, the most frequent first
	Traces                                   []*trace.Trace // the first ones
}

// End is a switch at which probes were seen last.
type End struct {
	Switch model.NodeID `json:"switch"`
	Probes uint64       `json:"probes"`
}

// keepTraces is how many traces of a series are kept whole.
const keepTraces = 16

// Series makes the question about count packets of a format: with StartEvery, the
// paper's call. The host
// that owns the first source address sends them, or the first host of the fabric.
func (d *Scheduler) Series(now model.Time, text string, count uint32) (*Series, error) {
	r := d.intent.At(now)
	p, err := ParseFormat(text, func(name string) (model.Addr, bool) {
		id, ok := r.Fabric().ByName(name)
		if !ok {
			return model.Addr{}, false
		}
		return r.Fabric().Node(id).IPv4, true
	})
	if err != nil {
		return nil, err
	}
	q := &Series{packet: p, answer: SeriesAnswer{Sent: uint64(count)}}
	from := p.Key.Src
	if len(p.Tunnels) > 0 {
		from = p.Tunnels[0].Src
	}
	hosts := r.Fabric().Hosts()
	if len(hosts) == 0 {
		return nil, fmt.Errorf("probe: a fabric without hosts, want one to probe from")
	}
	q.host = hosts[0]
	if own := r.Owners(from); len(own) > 0 && slices.Contains(hosts, own[0]) {
		q.host = own[0]
	}
	q.answer.Host = q.host
	return q, nil
}

func (q *Series) plan() (model.NodeID, []prober.Packet, uint32) {
	return q.host, []prober.Packet{q.packet}, uint32(q.answer.Sent)
}

func (q *Series) addTrace(_ uint32, t *trace.Trace) {
	a := &q.answer
	a.Seen++
	switch t.End {
	case trace.Arrived:
		a.Arrived++
	case trace.Lost:
		a.Lost++
	case trace.Looped:
		a.Looped++
	default:
		a.Other++
	}
	at := t.Hops[len(t.Hops)-1].Switch
	i := slices.IndexFunc(a.Ends, func(e End) bool { return e.Switch == at })
	if i < 0 {
		i = len(a.Ends)
		a.Ends = append(a.Ends, End{Switch: at})
	}
	a.Ends[i].Probes++
	if len(a.Traces) < keepTraces {
		a.Traces = append(a.Traces, t.Clone())
	}
}

// Heard is part of Question.
func (q *Series) Heard() uint32 { return uint32(q.answer.Seen) }

// Answer counts the traces so far.
func (q *Series) Answer() SeriesAnswer {
	a := q.answer
	a.Ends = slices.Clone(a.Ends)
	slices.SortStableFunc(a.Ends, func(x, y End) int { return int(y.Probes) - int(x.Probes) })
	return a
}
