package api

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model/record"
)

// TestFiltersRequireOfTheStore: what every match has is asked of the store, and nothing
// else.
func TestFiltersRequireOfTheStore(t *testing.T) {
	s, k := newServer(t)
	f := k.Fabric()
	sw := f.Node(f.Switches()[0]).Name
	for text, want := range map[string]record.Query{
		"":                                     {},
		"trace.drop":                           {End: "lost"},
		"trace.loop && hop.switch == " + sw:    {End: "looped", Node: sw},
		"trace.end == arrived":                 {End: "arrived"},
		"trace.end != arrived":                 {},
		"trace.last == " + sw:                  {Node: sw},
		"hop.switch != " + sw:                  {},
		"hop.switch contains " + sw:            {},
		"trace.why == debug":                   {Why: "debug"},
		"trace.latency > 5us && trace.hops> 2": {MinLatency: 5*time.Microsecond + 1},
		"trace.latency >= 5us":                 {MinLatency: 5 * time.Microsecond},
		"trace.latency < 5us":                  {},
		"trace.drop || trace.why == debug":     {},
		"!trace.drop":                          {},
		"ip.src == 10.0.0.1":                   {}, // one of several in a tunnel
	} {
		parsed, err := parseFilter(s.currentFabric().traces, text)
		if err != nil {
			t.Fatal(err)
		}
		var got record.Query
		requireOf(parsed.Condition(), f, &got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("filter %q (- want, + got):\n%s", text, d)
		}
	}
}
