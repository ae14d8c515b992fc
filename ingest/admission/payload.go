package admission

import (
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Report is part of translate.Gate: a reporter appends to its own lists, and about
// itself. Data that is not of the list's format is admitted, for the analyses to
// count as malformed; so are reports that no list takes, for the translator to
// answer. Keyed reports have no analysis behind them that would notice: they must be
// of a known format. Datagram has found the reporter.
func (p *Policy) Report(_ model.Time, h *dta.Header, r *dta.Report) translate.Refusal {
	if r.Primitive != dta.Append {
		return p.keyed(h.Reporter, r)
	}
	kind, owner := p.cfg.List(r.List)
	n := p.node(h.Reporter)
	switch {
	case kind == Unplanned:
		return translate.Admitted
	case n == nil:
		return translate.UnknownReporter
	case n.Switch == (kind == DiagnosisRequest), kind == Flowset && owner != h.Reporter:
		return translate.ForeignList
	}
	switch kind {
	case Flowset:
		sw, _, ok := flowset.Peek(r.Data)
		scope, _ := flowset.PeekScope(r.Data)
		return p.own(ok, h.Reporter, sw, scope, 0)
	case Mirror:
		var m mirror.Mirror
		_, err := m.Parse(r.Data)
		return p.own(err == nil, h.Reporter, m.Switch, m.In, m.Out)
	case Epoch:
		sw, _, ok := epoch.Peek(r.Data)
		return p.own(ok, h.Reporter, sw, 0, 0)
	case Label:
		return p.labels(h.Reporter, r.Data)
	}
	var request poll.Poll
	_, err := request.Parse(r.Data)
	return p.own(err == nil, h.Reporter, request.Event.Host, 0, 0)
}

// own decides about data of a node and two of its ports, of which 0 is none.
func (p *Policy) own(ok bool, reporter, node model.NodeID, a, b model.PortID) translate.Refusal {
	switch {
	case !ok:
		return translate.Admitted
	case node != reporter:
		return translate.ForeignSwitch
	case int(max(a, b)) > p.cfg.Nodes[node].Ports:
		return translate.UnknownPlace
	}
	return translate.Admitted
}

// labels decides about the labels of a packet: those of the switches on its path,
// of which the reporter is the last.
func (p *Policy) labels(reporter model.NodeID, data []byte) translate.Refusal {
	var e label.Export
	if _, err := e.Parse(data); err != nil {
		return translate.Admitted
	}
	if e.Switch != reporter {
		return translate.ForeignSwitch
	}
	for i := range e.Labels.Len() {
		it := e.Labels.Item(i)
		if n := p.node(it.Switch); n == nil || !n.Switch || int(max(it.Ingress, it.Egress)) > n.Ports {
			return translate.UnknownPlace
		}
	}
	return translate.Admitted
}
