package admission

import (
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
	} {
		t.Run(name, func(t *testing.T) {
			if got := newPolicy(t, nil).Report(now, &dta.Header{Reporter: tc.from}, &tc.report); got != tc.want {
				t.Errorf("Report(%+v of %d) = %v; want %v", tc.report, tc.from, got, tc.want)
			}
		})
	}
}
