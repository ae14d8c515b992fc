package api

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// ended is a Diagnoser of a fabric whose hosts have stopped sending.
type ended struct{ *fake }

func (e ended) RequestDiagnosis(_ context.Context, flow model.FlowKey, _ time.Time) (string, error) {
	return "", fmt.Errorf("%v is not sent: %w", flow, ErrNotFound)
}

// TestEndedFlow: a report of a flow that has ended returns the recorded verdicts in
// which it is a victim or a culprit, no others, and 404 for an unknown flow.
func TestEndedFlow(t *testing.T) {
	for name, tc := range map[string]struct {
		flow  int
		since time.Duration // before now
		code  int
		want  []string // diagnoses
		role  string
	}{
		"only victim":           {flow: 3, code: 202, want: []string{"d-3"}, role: "victim"},
		"victim beside another": {flow: 8, code: 202, want: []string{"d-0", "d-1", "d-2", "d-3", "d-4"}, role: "victim"},
		"culprit":               {flow: 1, code: 202, want: []string{"d-0", "d-1", "d-2", "d-3", "d-4"}, role: "culprit"},
		"nothing since":         {flow: 3, since: 30 * time.Second, code: 202},
		"nothing wrong":         {flow: 6, code: 202},
		"unknown":               {flow: 40, code: 404},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := newServer(t, func(_ *Config, d *Deps) { d.Diagnoser = ended{d.Diagnoser.(*fake)} })
			k.batch = record.Batch{}
			k.fill(500)
			if flow := k.flow(8); tc.flow == 8 {
				for i := range k.batch.Flows {
					k.batch.Flows[i].Flow = flow
				}
			}
			body := fmt.Sprintf(`{"flow":%q}`, k.flow(tc.flow))
			if tc.since > 0 {
				body = fmt.Sprintf(`{"flow":%q,"since":%q}`, k.flow(tc.flow), epoch0.Add(-tc.since).Format(time.RFC3339))
			}
			w := do(s.Handler(), "POST", Prefix+"/slow-flows", body)
			if w.Code != tc.code {
				t.Fatalf("POST %s = %d %s; want %d", body, w.Code, w.Body, tc.code)
			}
			if tc.code != 202 {
				return
			}
			var got SlowFlow
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if got.State != "done" || len(got.Verdicts) != len(tc.want) {
				t.Fatalf("%+v; want it done, by %v", got, tc.want)
			}
			for i, v := range got.Verdicts {
				if v.Diagnosis != tc.want[i] || v.Role != tc.role {
					t.Errorf("verdict %d is %s as %s; want %s as %s", i, v.Diagnosis, v.Role, tc.want[i], tc.role)
				}
			}
			if w := do(s.Handler(), "GET", Prefix+"/slow-flows/"+got.ID, ""); w.Code != 200 {
				t.Errorf("GET again: %d %s; want it kept", w.Code, w.Body)
			}
		})
	}
}
