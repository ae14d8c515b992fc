package admission

import (
	"encoding/binary"
	"testing"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

func stateOf(sw model.NodeID, port model.PortID) dta.Report {
	return dta.Report{
		Primitive: dta.KeyWrite, Redundancy: keyed.Copies,
		Key: keyed.PortKey{Port: model.Port{Node: sw, Port: port}}.AppendTo(nil), Data: keyed.PortState{Time: 1}.AppendTo(nil),
	}
}

// addr0 is the address of host0, which is attached to tor0.
var addr0 = model.Addr4(0x0a000001)

func countOf(sw model.NodeID, host model.Addr, delta uint64) dta.Report {
	return dta.Report{
		Primitive: dta.KeyIncrement, Redundancy: keyed.Copies,
		Key: keyed.HostKey{Switch: sw, Host: host, Class: 3}.AppendTo(nil), Delta: delta,
	}
}

// cardOf is the second part of a postcard.
func cardOf(sw model.NodeID, hop, path uint8) dta.Report {
	card := keyed.Postcard{Switch: sw, Queue: 9}
	key := keyed.NewPostcardKey(&model.FlowKey{Src: addr0, Dst: model.Addr4(9), Proto: model.UDP}, 1)
	key.Part = keyed.QueuePart
	return dta.Report{
		Primitive: dta.Postcarding, Redundancy: keyed.PostcardCopies, Hop: hop, Path: path,
		Key: key.AppendTo(nil), Data: binary.BigEndian.AppendUint32(nil, card.Words()[keyed.QueuePart]),
	}
}

// TestKeyedReports: a switch writes its own keys, of known formats, and nobody else
// writes any.
func TestKeyedReports(t *testing.T) {
	changed := func(r dta.Report, change func(*dta.Report)) dta.Report { change(&r); return r }
	for name, tc := range map[string]struct {
		from   model.NodeID
		report dta.Report
		want   translate.Refusal
	}{
		"own port":                 {tor0, stateOf(tor0, 4), translate.Admitted},
		"port of another switch":   {tor1, stateOf(tor0, 1), translate.ForeignSwitch},
		"port that does not exist": {tor0, stateOf(tor0, 5), translate.UnknownPlace},
		"port 0":                   {tor0, stateOf(tor0, 0), translate.UnknownPlace},
		"a host's port":            {host0, stateOf(host0, 1), translate.ForeignSwitch},
		"switch after the last":    {tor0, stateOf(4, 1), translate.ForeignSwitch},
		"fewer copies":             {tor0, changed(stateOf(tor0, 1), func(r *dta.Report) { r.Redundancy = 2 }), translate.MalformedKey},
		"another value":            {tor0, changed(stateOf(tor0, 1), func(r *dta.Report) { r.Data = r.Data[:4] }), translate.MalformedKey},
		"another key":              {tor0, changed(stateOf(tor0, 1), func(r *dta.Report) { r.Key = []byte{9, 9} }), translate.MalformedKey},

		"count of its host":             {tor0, countOf(tor0, addr0, keyed.MaxDelta), translate.Admitted},
		"count of another switch":       {tor1, countOf(tor0, addr0, 1), translate.ForeignSwitch},
		"count of another's host":       {tor1, countOf(tor1, addr0, 1), translate.ForeignHost},
		"count of an unknown host":      {tor0, countOf(tor0, model.Addr4(9), 1), translate.ForeignHost},
		"count of a host by itself":     {host0, countOf(host0, addr0, 1), translate.ForeignSwitch},
		"count that subtracts":          {tor0, countOf(tor0, addr0, 1<<64-1), translate.MalformedKey},
		"count above the limit":         {tor0, countOf(tor0, addr0, keyed.MaxDelta+1), translate.MalformedKey},
		"count in fewer cells":          {tor0, changed(countOf(tor0, addr0, 1), func(r *dta.Report) { r.Redundancy = 1 }), translate.MalformedKey},
		"count under the key of a port": {tor0, changed(countOf(tor0, addr0, 1), func(r *dta.Report) { r.Key = stateOf(tor0, 1).Key }), translate.MalformedKey},
		"state under the key of a host": {tor0, changed(stateOf(tor0, 1), func(r *dta.Report) { r.Key = countOf(tor0, addr0, 1).Key }), translate.MalformedKey},

		"postcard":                       {tor0, cardOf(tor0, 4, 5), translate.Admitted},
		"postcard of the first hop":      {tor0, cardOf(tor0, 0, 0), translate.Admitted},
		"postcard of another switch":     {tor1, cardOf(tor0, 1, 0), translate.ForeignSwitch},
		"postcard of a host":             {host0, cardOf(host0, 1, 0), translate.ForeignSwitch},
		"postcard before the end":        {tor0, cardOf(tor0, 1, 5), translate.MalformedKey},
		"postcard of the 16th hop":       {tor0, cardOf(tor0, 15, 0), translate.MalformedKey},
		"postcard of 8 bytes":            {tor0, changed(cardOf(tor0, 1, 0), func(r *dta.Report) { r.Data = make([]byte, 8) }), translate.MalformedKey},
		"postcard in fewer chunks":       {tor0, changed(cardOf(tor0, 1, 0), func(r *dta.Report) { r.Redundancy = 1 }), translate.MalformedKey},
		"postcard in more chunks":        {tor0, changed(cardOf(tor0, 1, 0), func(r *dta.Report) { r.Redundancy = 4 }), translate.MalformedKey},
		"postcard under another key":     {tor0, changed(cardOf(tor0, 1, 0), func(r *dta.Report) { r.Key = stateOf(tor0, 1).Key }), translate.MalformedKey},
		"postcard that names no switch":  {tor0, changed(cardOf(tor0, 1, 0), func(r *dta.Report) { r.Data = []byte{255, 255, 255, 255} }), translate.ForeignSwitch},
		"state under a key of postcards": {tor0, changed(stateOf(tor0, 1), func(r *dta.Report) { r.Key = cardOf(tor0, 1, 0).Key }), translate.MalformedKey},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newPolicy(t, nil).Report(now, &dta.Header{Reporter: tc.from}, &tc.report); got != tc.want {
				t.Errorf("Report(%+v of %d) = %v; want %v", tc.report, tc.from, got, tc.want)
			}
		})
	}
}
