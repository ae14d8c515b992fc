package admission

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// keyed decides about a report with a key: a switch writes its own keys only. A key
// that others may write as well would let one switch overwrite what another reported.
func (p *Policy) keyed(reporter model.NodeID, r *dta.Report) translate.Refusal {
	if n := p.node(reporter); n == nil || !n.Switch {
		return translate.ForeignSwitch
	}
	copies := uint8(keyed.Copies)
	if r.Primitive == dta.Postcarding {
		copies = keyed.PostcardCopies
	}
	if r.Redundancy != copies {
		return translate.MalformedKey // it would contradict the copies that it leaves as they are
	}
	switch r.Primitive {
	case dta.KeyWrite:
		return p.portState(reporter, r)
	case dta.KeyIncrement:
		return p.hostCounter(reporter, r)
	}
	return postcard(reporter, r)
}

// postcard decides about a postcard. Switches of a path share its key, so each value
// names its switch: a switch can claim to be on a path, and not speak for another. Only
// the last hop knows the length of the path.
func postcard(reporter model.NodeID, r *dta.Report) translate.Refusal {
	var key keyed.PostcardKey
	switch {
	case key.Parse(r.Key) != nil || len(r.Data) != 4 || r.Hop >= keyed.MaxHops || r.Path != 0 && r.Path != r.Hop+1:
		return translate.MalformedKey
	case keyed.PostcardSwitch(binary.BigEndian.Uint32(r.Data)) != reporter:
		return translate.ForeignSwitch
	}
	return translate.Admitted
}

// hostCounter decides about a counter. Counters share cells: what a switch adds to
// those of hosts that it does not have would show in others' sums.
func (p *Policy) hostCounter(reporter model.NodeID, r *dta.Report) translate.Refusal {
	var key keyed.HostKey
	switch {
	case key.Parse(r.Key) != nil || r.Delta > keyed.MaxDelta:
		return translate.MalformedKey
	case key.Switch != reporter:
		return translate.ForeignSwitch
	case p.cfg.Attached == nil || !p.cfg.Attached(key.Host, reporter):
		return translate.ForeignHost
	}
	return translate.Admitted
}

func (p *Policy) portState(reporter model.NodeID, r *dta.Report) translate.Refusal {
	var key keyed.PortKey
	var state keyed.PortState
	if key.Parse(r.Key) != nil || state.Parse(r.Data) != nil {
		return translate.MalformedKey
	}
	if key.Port.Port == 0 && key.Node == reporter {
		return translate.UnknownPlace
	}
	return p.own(true, reporter, key.Node, key.Port.Port, 0)
}
