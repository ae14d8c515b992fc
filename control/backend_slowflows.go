package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// RequestDiagnosis is part of api.Diagnoser.
func (f *Backend) RequestDiagnosis(ctx context.Context, flow model.FlowKey, _ time.Time) (id string, err error) {
	failed := f.do(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, c := range f.requests {
			if c.Flow == flow && !c.Done {
				id = c.ID
				return
			}
		}
		polled := f.c.devices.PollFlow(flow)
		if !polled && f.c.cfg.SelfPolling && f.c.stats.Reports[DiagnosisRequest]+f.c.stats.Reports[Epoch] == 0 {
			err = fmt.Errorf("no host of this fabric has polled about a slow flow so far, and this controller cannot have one do so: "+
				"hosts need Weft's detection agent: %w", api.ErrUnsupported)
			return
		}
		if !polled && !f.c.cfg.SelfPolling {
			err = fmt.Errorf("%v is not a flow that a host sends at present: %w", flow, api.ErrNotFound)
			return
		}
		f.next++
		one := &api.DiagnosisRequest{ID: "c" + strconv.Itoa(f.next), Flow: flow, Time: f.c.wallTime(f.c.now)}
		f.requests = pushNewest(f.requests, one)
		id = one.ID
		f.c.scheduleAfter(f.c.cfg.VerdictTimeout, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			one.Done = true
		})
	})
	if failed != nil {
		return "", failed
	}
	return id, err
}

// AddCompleted is part of api.Diagnoser.
func (f *Backend) AddCompleted(flow model.FlowKey, at time.Time, found []record.Diagnosis) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	one := &api.DiagnosisRequest{ID: "c" + strconv.Itoa(f.next), Flow: flow, Time: at, Done: true, Diagnoses: found}
	f.requests = pushNewest(f.requests, one)
	return one.ID
}

// addVerdict adds a verdict to the diagnosis requests for its victim.
func (f *Backend) addVerdict(v *diagnose.Verdict, r *record.Diagnosis) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.requests {
		if c.Flow != v.Victim || c.Done {
			continue
		}
		c.Done = true
		if r != nil {
			c.Diagnoses = append(c.Diagnoses, *r)
		}
	}
}

// DiagnosisRequests is part of api.Diagnoser.
func (f *Backend) DiagnosisRequests() []api.DiagnosisRequest { return newestFirst(f, &f.requests) }

// DiagnosisRequest is part of api.Diagnoser.
func (f *Backend) DiagnosisRequest(_ context.Context, id string) (api.DiagnosisRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.requests, func(c *api.DiagnosisRequest) bool { return c.ID == id })
	if i < 0 {
		return api.DiagnosisRequest{}, fmt.Errorf("diagnosis request %q: %w", id, api.ErrNotFound)
	}
	c := *f.requests[i]
	c.Diagnoses = slices.Clone(c.Diagnoses)
	return c, nil
}
