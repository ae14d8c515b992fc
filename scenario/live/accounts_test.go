package live

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model/record"
)

// TestVerdictsAccountForTheLateness: in a storm, records of its verdicts say how long
// the host's pauses delayed a packet, and the terms sum to its lateness.
func TestVerdictsAccountForTheLateness(t *testing.T) {
	race.LeaveToPlainRun(t)
	var kept []record.Diagnosis
	l, err := NewDemo(small(3), control.Output{Records: func(b *record.Batch) { kept = append(kept, b.Diagnoses...) }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pass(t, l, 50*time.Millisecond)
	f, err := NewDirector(l).Inject("storm", Anywhere, faultDuration)
	if err != nil {
		t.Fatal(err)
	}
	pass(t, l, 60*time.Millisecond)
	host := l.fabric.Node(f.Nodes[0]).Name
	accounts, blamed := 0, 0
	for _, r := range kept {
		var d api.DiagnosisBody
		if err := json.Unmarshal(r.Body, &d); err != nil {
			t.Fatal(err)
		}
		a := d.Account
		if a == nil || r.Anomaly != "pfc-storm" {
			continue
		}
		accounts++
		sum := int64(0)
		for _, term := range a.Terms {
			sum += term.Ns
		}
		if 10*sum < 9*a.LateNs || sum > a.LateNs || len(a.Timeline.Rows) == 0 || a.Timeline.Text == "" {
			t.Errorf("%s: %s: terms of %d ns of %d, %d rows", r.ID, a.Text, sum, a.LateNs, len(a.Timeline.Rows))
		}
		if top := a.Terms[0]; top.Kind == "host injection" && top.Location.Peer == host {
			blamed++
		}
	}
	t.Logf("%d accounts, %d blame %s", accounts, blamed, host)
	if accounts == 0 || blamed < accounts {
		t.Errorf("%d accounts of the storm at %s, %d with its pauses as the longest term; want some, all", accounts, host, blamed)
	}
}
