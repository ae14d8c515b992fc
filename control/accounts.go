package control

import (
	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// Bounds of what is kept of an account. Reports of a large incident name hundreds of
// queues, of which a person reads the first.
const (
	maxTerms        = 16
	maxTermFlows    = 16
	maxTimelineRows = 24
	timelineColumns = 60
)

// account is the account of a verdict's late packet, nil if there is none.
func (c *Controller) account(v *diagnose.Verdict) *api.Account {
	a := v.Account
	if a == nil || a.Late <= 0 {
		return nil
	}
	names := attribution.FabricNames(c.fabric)
	out := &api.Account{
		Text: a.Sentence(names), LateNs: int64(a.Late), InFlight: a.InFlight, Share: a.Confidence(),
		Terms: []api.AccountTerm{}, Timeline: c.timeline(v.Timeline, names),
	}
	for i := range a.Terms {
		t := &a.Terms[i]
		if len(out.Terms) == maxTerms || 100*t.Time < a.Late {
			break
		}
		out.Terms = append(out.Terms, c.accountTerm(t))
	}
	return out
}

func (c *Controller) accountTerm(t *attribution.Term) api.AccountTerm {
	out := api.AccountTerm{
		Kind: t.Kind.String(), Ns: int64(t.Time), MinNs: int64(t.Min), MaxNs: int64(t.Max),
		Via: []api.PortRef{}, Culprits: []api.Participant{},
	}
	if t.Kind == attribution.Unexplained {
		out.Why = t.Reason.String()
	}
	if t.Place != nil {
		p := c.portRef(t.Place.Port)
		out.Location = &p
		if t.Kind == attribution.HostInjection {
			out.Culprits = append(out.Culprits, api.Participant{Host: c.nodeName(t.Place.Peer.Node), Weight: 1})
		}
	}
	for _, q := range t.Via {
		out.Via = append(out.Via, c.portRef(q.Port))
	}
	for _, k := range t.Culprits[:min(len(t.Culprits), maxTermFlows)] {
		f := c.flowRef(k.Flow)
		out.Culprits = append(out.Culprits, api.Participant{Flow: &f, Weight: k.Share})
	}
	return out
}

func (c *Controller) timeline(t attribution.Timeline, names attribution.Names) api.Timeline {
	t.Rows = t.Rows[:min(len(t.Rows), maxTimelineRows)]
	out := api.Timeline{LengthNs: int64(t.To.Sub(t.From)), Rows: []api.TimelineRow{}, Senders: []api.TimelineSender{}, Text: t.Draw(names, timelineColumns)}
	spans := func(list []attribution.Span) []api.Span {
		all := []api.Span{}
		for _, s := range list {
			all = append(all, api.Span{FromNs: int64(s.From.Sub(t.From)), ToNs: int64(s.To.Sub(t.From))})
		}
		return all
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		out.Rows = append(out.Rows, api.TimelineRow{
			Port: c.portRef(r.Place.Port), Reported: r.Reported,
			Paused: spans(r.Paused), Congested: spans(r.Congested), Packet: spans(r.Packet),
		})
	}
	return out
}

// senders is what flows sent, with times since a timeline's begin.
func (c *Controller) senders(meters []provenance.FlowMeter, begin model.Time) []api.TimelineSender {
	out := []api.TimelineSender{}
	for i := range meters {
		m := &meters[i]
		s := api.TimelineSender{FlowRef: c.flowRef(m.Flow), Priority: m.Priority, Switch: c.nodeName(m.Switch), Outs: c.portRefs([]api.PortRef{}, m.Outs), Intervals: []api.SentInterval{}}
		for _, v := range m.Intervals {
			s.Intervals = append(s.Intervals, api.SentInterval{
				Span: api.Span{FromNs: int64(v.From.Sub(begin)), ToNs: int64(v.To.Sub(begin))}, Packets: v.Packets, Bytes: int64(v.Bytes),
			})
		}
		out = append(out, s)
	}
	return out
}
