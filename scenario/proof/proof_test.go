package proof

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// storm is the record of a PFC storm of h15 that delays h1 → h14 in a fat-tree, with
// buffers of 2 MB: what a controller answered for examples/storm.yaml.
func storm(t *testing.T) *Case {
	t.Helper()
	data, err := os.ReadFile("testdata/storm.json")
	if err != nil {
		t.Fatal(err)
	}
	d := new(api.DiagnosisDetail)
	if err := json.Unmarshal(data, d); err != nil {
		t.Fatal(err)
	}
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	c := &Case{Fabric: scenario.FromTopology("storm", &file.Document{Fabric: f, Seed: 1}), Diagnosis: d}
	c.Fabric.Sim.Buffer = 2_000_000
	c.Named = NamedBy(d)
	return c
}

func TestRemovalOfTheCauseMends(t *testing.T) {
	c := storm(t)
	r, err := Prove(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Error > tolerance || r.Rebuilt.Slowdown < 3 {
		t.Errorf("rebuilt: late by %d ns, recorded %d ns so far: error %.2f; want as late", r.Rebuilt.LateNs, r.LateNs, r.Error)
	}
	// Without the storm three senders still share the receiver's link.
	if r.Verdict != Proven && r.Verdict != Partly || r.fall(&r.Without) < 0.6 {
		t.Errorf("%s: %s; want most of the lateness gone without the pause frames", r.Verdict, r.Text)
	}
	for _, p := range r.Trials() {
		if _, err := scenario.Parse(p.Name+".yaml", []byte(p.Scenario)); err != nil {
			t.Errorf("the scenario of %s cannot be read: %v", p.Name, err)
		}
	}
}

func TestWrongVerdictsAreRefuted(t *testing.T) {
	for name, named := range map[string]Culprits{
		"another host": {Hosts: []string{"h3"}},
	} {
		c := storm(t)
		c.Named = named
		r, err := Prove(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != Refuted {
			t.Errorf("%s: %s: %s; want it refuted", name, r.Verdict, r.Text)
		}
	}
}

// Equal records give equal proofs.
func TestProofsRepeat(t *testing.T) {
	var last string
	for i := range 2 {
		r, err := Prove(t.Context(), storm(t))
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && last != string(b) {
			t.Errorf("a second proof differs:\n%s\n%s", last, b)
		}
		last = string(b)
	}
}

func TestMissingRecordsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*api.DiagnosisDetail){
		"no account of a late packet":     func(d *api.DiagnosisDetail) { d.Account = nil },
		"what flows sent":                 func(d *api.DiagnosisDetail) { d.Account.Timeline.Senders = nil },
		"when the packet came":            func(d *api.DiagnosisDetail) { d.Account.Timeline.Rows[0].Packet = nil },
		"has an end outside the topology": func(d *api.DiagnosisDetail) { d.Victim.Dst = "elsewhere" },
		"a run of more than 100ms is not": func(d *api.DiagnosisDetail) { d.Account.Timeline.Rows[4].Paused[0].ToNs = 1e12 },
	} {
		c := storm(t)
		change(c.Diagnosis)
		if _, err := Prove(t.Context(), c); !IsMissing(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want one that says %q is missing", err, want)
		}
	}
	c := storm(t)
	c.Named = Culprits{}
	if _, err := Prove(t.Context(), c); err == nil || !strings.Contains(err.Error(), "nothing to remove") {
		t.Errorf("error %v of a verdict that names nothing; want one", err)
	}
}

// Values that no switch counts neither crash nor run for long.
func TestAbsurdRecords(t *testing.T) {
	for name, change := range map[string]func(*api.Timeline){
		"bytes":     func(t *api.Timeline) { t.Senders[0].Intervals[0].Bytes = math.MaxInt64 },
		"packets":   func(t *api.Timeline) { t.Senders[0].Intervals[0].Packets = math.MaxUint64 },
		"times":     func(t *api.Timeline) { t.Senders[0].Intervals[0].FromNs = math.MinInt64 },
		"backwards": func(t *api.Timeline) { t.Senders[0].Intervals[0].ToNs = -1e9 },
		"ports":     func(t *api.Timeline) { t.Senders[0].Outs[0].Port = 60000 },
		"switch":    func(t *api.Timeline) { t.Senders[0].Switch = "nowhere" },
		"priority":  func(t *api.Timeline) { t.Senders[0].Priority = 200 },
	} {
		c := storm(t)
		change(&c.Diagnosis.Account.Timeline)
		if _, err := Prove(t.Context(), c); err != nil {
			t.Logf("%s: %v", name, err)
		}
	}
}
