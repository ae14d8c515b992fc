package traces

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
)

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const small = `name: small
duration: 4ms
topology:
  generate: {kind: leaf-spine, leaves: 3, spines: 2, hosts: 2}
traffic:
  - {kind: persistent, pairs: [h0>h3, h1>h4, h2>h5], rate: 500Mb/s, start: 10us, stop: 3ms}
`

func TestExampleNamesTheLeafAndTheLoop(t *testing.T) {
	s, err := scenario.Read("../../examples/trace.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Play(t.Context(), s, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	name := func(id model.NodeID) string { return p.Fabric().Node(id).Name }
	var got []string
	for _, f := range p.Findings() {
		one := f.Kind.String() + " " + name(f.Switch)
		if f.Kind == trace.Loop {
			one = f.Kind.String()
			for _, id := range f.Switches {
				one += " " + name(id)
			}
		} else if f.Known {
			one += ">" + name(f.Next)
		}
		got = append(got, one)
	}
	if text := strings.Join(got, ", "); text != "loop tor2 leaf2, drop leaf0>spine0" {
		t.Errorf("findings: %s; want the loop and the lossy link", text)
	}
	drops := uint64(0)
	for _, f := range p.Findings() {
		if f.Kind == trace.Drop {
			drops = f.Ended
		}
	}
	truth := uint64(0)
	for _, d := range p.Result.Run.Drops {
		if d.Reason == "silent" {
			truth += d.Packets
		}
	}
	if truth == 0 || drops < truth*9/10 || drops > truth*11/10 {
		t.Errorf("%d packets ended at the link; the simulator dropped %d", drops, truth)
	}
}

func TestDebugMarksAndCounters(t *testing.T) {
	s := parse(t, small+"telemetry:\n  - {kind: epoch}\n  - {kind: mirror, lists: 2, protocol: off}\n")
	p, err := Play(t.Context(), s, Options{
		Period: time.Millisecond, Counters: []Counter{{"from h1", "ip.src == h1"}},
		Debug: []tracewatch.Mark{{Servers: []string{"h0", "h1"}, Filter: "infiniband && ip.dst in {h3, h4} && infiniband.bth.psn < 20"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.GetTrace("", 0, 1<<62, "ip.src", "trace.debug", "infiniband.bth.psn", "trace.hops")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 40 || p.Markers.Stats().Marked != 40 {
		t.Errorf("%d traces, %+v; want those of twenty packets of two flows", len(got.Rows), p.Markers.Stats())
	}
	for _, row := range got.Rows {
		if row[1] != "true" || row[3] != "3" {
			t.Errorf("%v; want a marked packet seen by three switches", row)
		}
	}
	list, err := p.GetCounter("from h1", 0, 1<<62)
	if err != nil || len(list) < 2 || list[0].Count+list[1].Count != 20 {
		t.Errorf("counter: %+v, %v; want 20 in all", list, err)
	}
}

func TestWhatCannotWork(t *testing.T) {
	mirrors := small + "telemetry:\n  - {kind: mirror}\n"
	for want, tc := range map[string]struct {
		text string
		o    Options
	}{
		"has no mirrors":        {small, Options{}},
		"unknown field":         {mirrors, Options{Counters: []Counter{{"x", "nonsense"}}}},
		`server "tor0"`:         {mirrors, Options{Debug: []tracewatch.Mark{{Servers: []string{"tor0"}}}}},
		"closed after -1s":      {mirrors, Options{Close: -time.Second}},
		"a question of its own": {mirrors, Options{Check: func(*tracewatch.Watch) error { return errTest }}},
	} {
		if _, err := Play(t.Context(), parse(t, tc.text), tc.o, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

type testError struct{}

func (testError) Error() string { return "a question of its own" }

var errTest = testError{}
