package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/control/why"
)

// TestWhyNamesCauses: of a scenario with three faults, a host behind one of them is told
// the incident and its losses, its flow the place, and a host far from them nothing.
func TestWhyNamesCauses(t *testing.T) {
	const file = "../../examples/flow-faults.yaml"
	answers := queryScenario[[]why.Answer](t, exitFault, "why", "h2", "h0>h2", "--scenario", file)
	if len(answers) != 2 {
		t.Fatalf("%d answers; want one of the host and one of the flow", len(answers))
	}
	for i := range answers {
		for _, kind := range []why.Kind{why.Involved, why.Lost} {
			if !slices.ContainsFunc(answers[i].Causes, func(c why.Cause) bool { return c.Kind == kind && len(c.Evidence) > 0 }) {
				t.Errorf("%s: causes %+v; want one of kind %s, with evidence", answers[i].Subject, answers[i].Causes, kind)
			}
		}
	}
	if flow := answers[1]; !slices.ContainsFunc(flow.Causes, func(c why.Cause) bool { return strings.HasSuffix(c.Text, "between leaf0 and tor1") }) {
		t.Errorf("causes %+v; want losses between leaf0 and tor1", flow.Causes)
	}
	if a := queryScenario[[]why.Answer](t, exitFine, "why", "h14>h10", "h11>h7", "--scenario", file); len(a) != 2 {
		t.Errorf("%+v; want two answers without a cause", a)
	}
}
