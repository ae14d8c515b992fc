package api

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control/handling"
	"github.com/weft-telemetry/weft/model/record"
)

// Verification is a check whether the fault of an incident is still there.
type Verification struct {
	State   string     `json:"state" enum:"running,done"`
	Who     string     `json:"who"`
	Begin   time.Time  `json:"begin"`
	End     *time.Time `json:"end,omitempty" doc:"Absent while it runs"`
	Outcome string     `json:"outcome,omitempty" enum:"recovered,persists,unknown" doc:"Recovered: the fault is gone, and the incident closed; persists: it is still there, and the incident open; unknown: nothing shows it"`
	Text    string     `json:"text" doc:"What it does, or what it rests on"`
	SeenAs  string     `json:"seen_as,omitempty" doc:"Id of another incident that has the evidence of a fault that persists"`
}

// verifications are the newest ones by incident.
type verifications struct {
	mu    sync.Mutex
	list  map[string]*Verification
	order []string
}

// maxVerifications is how many results are kept.
const maxVerifications = 256

func (v *verifications) set(incident string, one Verification) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.list == nil {
		v.list = map[string]*Verification{}
	}
	if v.list[incident] == nil {
		if len(v.order) == maxVerifications {
			delete(v.list, v.order[0])
			v.order = append(v.order[:0], v.order[1:]...)
		}
		v.order = append(v.order, incident)
	}
	v.list[incident] = &one
}

// newest returns the newest verification of an incident; nil: none.
func (v *verifications) newest(incident string) *Verification {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.list[incident]
}

var errNoVerifier = fmt.Errorf("incidents: this controller cannot verify incidents: %w", ErrUnsupported)

func (s *Server) verifyRoutes() {
	post(s, "/incidents/{id}/verify", "verify-incident", "Incidents",
		"Check whether the fault of an incident is still there, and close or reopen it",
		func(ctx context.Context, in *idInput) (Verification, error) {
			switch {
			case s.deps.Verifier == nil:
				return Verification{}, errNoVerifier
			case s.deps.Handling == nil:
				return Verification{}, errNoHandling
			}
			r, err := findOne(ctx, s.deps.Records.Incidents, record.Query{Name: in.ID}, "incident")
			if err != nil {
				return Verification{}, err
			}
			d, err := newIncidentDetail(r)
			if err != nil {
				return Verification{}, err
			}
			return s.verify(ctx, &d)
		})
}

// verify starts a verification. Its result is stored when it is there, which may be
// long after the response.
func (s *Server) verify(ctx context.Context, d *IncidentDetail) (Verification, error) {
	who, result := callerOf(ctx).name(), make(chan Verification, 1)
	if !s.handlers.begin() {
		return Verification{}, fmt.Errorf("the controller stops: %w", ErrBusy)
	}
	v, err := s.deps.Verifier.VerifyIncident(ctx, d, func(v Verification) { result <- v })
	if err != nil {
		s.handlers.end()
		return v, err
	}
	v.Who = who
	s.verifications.set(d.ID, v)
	go func() {
		defer s.handlers.end()
		select {
		case v := <-result:
			v.Who = who
			s.verified(d.ID, v)
		case <-s.ended.Done(): // the controller stops: it has no result
		}
	}()
	return v, nil
}

// verified stores the result of a verification and publishes it.
func (s *Server) verified(id string, v Verification) {
	ctx, done := context.WithTimeout(s.ended, s.cfg.RequestTimeout)
	defer done()
	text := v.Outcome + ": " + v.Text
	if v.SeenAs != "" {
		text += " (seen as " + v.SeenAs + ")"
	}
	_, err := s.actOnIncident(ctx, record.IncidentAction{
		Time: *v.End, Incident: id, Kind: handling.Verify, Who: v.Who, Text: text,
	})
	if err != nil {
		s.log.Error("the result of a verification was not stored", "incident", id, "result", text, "err", err)
	}
	s.verifications.set(id, v)
}
