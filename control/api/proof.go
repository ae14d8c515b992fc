package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/control/handling"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Proof is a test by experiment of an incident's verdict: what happened is rebuilt from
// records, and simulated with and without what the verdict names.
type Proof struct {
	State     string       `json:"state" enum:"running,done"`
	Who       string       `json:"who"`
	Begin     time.Time    `json:"begin"`
	End       *time.Time   `json:"end,omitempty" doc:"Absent while it runs"`
	Runs      int          `json:"runs" doc:"Simulations so far"`
	Outcome   string       `json:"outcome,omitempty" enum:"proven,partly proven,refuted,not shown,failed" doc:"Not shown: the rebuilt run does not show the symptom; failed: there is no proof, and the text says why"`
	Text      string       `json:"text" doc:"What the outcome rests on"`
	Diagnosis string       `json:"diagnosis,omitempty" doc:"Id of the diagnosis that was tested"`
	Trials    []ProofTrial `json:"trials"`
	Notes     []string     `json:"notes" doc:"What the rebuilt run does not have"`
}

// ProofTrial is one simulation of a proof.
type ProofTrial struct {
	Name     string  `json:"name" doc:"rebuilt, without, control, together, or a remedy"`
	What     string  `json:"what" doc:"What was changed"`
	LateNs   int64   `json:"late_ns" doc:"How late the packet is"`
	Slowdown float64 `json:"slowdown" doc:"Its time as a multiple of that in an idle fabric"`
	// Harm is for packets that are not late.
	Harm *float64 `json:"harm,omitempty" doc:"Share of the victims' packets that do not arrive, not by an intended route, or beyond the even share of their port; absent where a late packet is tested"`
	Gain float64  `json:"gain" doc:"Share of the rebuilt lateness, or harm, that is gone"`
}

// ProofCase is an incident and its records.
type ProofCase struct {
	Topology  *Topology
	Incident  *IncidentDetail
	Diagnoses []DiagnosisDetail
	Flows     FlowRecords
}

// FlowRecords has flow records. A client has them, too.
type FlowRecords interface {
	Flows(ctx context.Context, q FlowsQuery) (FlowPage, error)
	Flow(ctx context.Context, key model.FlowKey, r Range) (FlowDetail, error)
}

// ownRecords are those of a server.
type ownRecords struct{ s *Server }

func (r ownRecords) Flows(ctx context.Context, q FlowsQuery) (FlowPage, error) {
	return r.s.listFlows(ctx, &q)
}

func (r ownRecords) Flow(ctx context.Context, key model.FlowKey, in Range) (FlowDetail, error) {
	return r.s.getFlow(ctx, &flowInput{Range: in, Key: key.String()})
}

// VerdictProver tests verdicts. ProveVerdict tests that of an incident, or of one of its
// diagnoses, and calls progress after every simulation; it ends soon after ctx.
type VerdictProver interface {
	ProveVerdict(ctx context.Context, c *ProofCase, progress func(runs int)) (Proof, error)
}

const (
	// maxProofTime is how long a proof may take: a hundred times what one of a fabric of 36
	// nodes does (docs/prove.md).
	maxProofTime = 2 * time.Minute
	// maxProofDiagnoses bounds the diagnoses of an incident from which one is chosen.
	maxProofDiagnoses = 32
	// maxProofs is how many results are kept in memory.
	maxProofs = 256
)

// proofs are the newest ones by incident, of which one may run.
type proofs struct {
	mu      sync.Mutex
	running string // incident; empty: none
	list    map[string]*Proof
	order   []string
}

// begin starts the only proof that may run.
func (p *proofs) begin(incident string, one Proof) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.running {
	case "":
	case incident:
		return fmt.Errorf("%s is being proven already: %w", incident, ErrConflict)
	default:
		return fmt.Errorf("%s is being proven, and one proof runs at a time, want it to end: %w", p.running, ErrBusy)
	}
	p.running = incident
	if p.list == nil {
		p.list = map[string]*Proof{}
	}
	if p.list[incident] == nil {
		if len(p.order) == maxProofs {
			delete(p.list, p.order[0])
			p.order = append(p.order[:0], p.order[1:]...)
		}
		p.order = append(p.order, incident)
	}
	p.list[incident] = &one
	return nil
}

func (p *proofs) progress(runs int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	with := *p.list[p.running] // others may read it
	with.Runs = runs
	p.list[p.running] = &with
}

func (p *proofs) end(one Proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list[p.running] = &one
	p.running = ""
}

// newest returns the newest proof of an incident; nil: none.
func (p *proofs) newest(incident string) *Proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list[incident]
}

var errNoVerdictProver = fmt.Errorf("incidents: this controller cannot prove verdicts: %w", ErrUnsupported)

func (s *Server) proofRoutes() {
	post(s, "/incidents/{id}/prove", "prove-incident", "Incidents",
		"Test the verdict of an incident by experiment, in the background; one proof runs at a time",
		func(ctx context.Context, in *idInput) (Proof, error) {
			switch {
			case s.deps.VerdictProver == nil:
				return Proof{}, errNoVerdictProver
			case s.deps.Handling == nil:
				return Proof{}, errNoHandling
			}
			r, err := findOne(ctx, s.deps.Records.Incidents, record.Query{Name: in.ID}, "incident")
			if err != nil {
				return Proof{}, err
			}
			d, err := newIncidentDetail(r)
			if err != nil {
				return Proof{}, err
			}
			return s.startProof(ctx, &d)
		})
}

// startProof starts a proof. Its result is stored when it is there.
func (s *Server) startProof(ctx context.Context, d *IncidentDetail) (Proof, error) {
	if d.MergedInto != "" {
		return Proof{}, fmt.Errorf("%s was merged into %s, want that: %w", d.ID, d.MergedInto, ErrConflict)
	}
	ids := d.Diagnoses
	if n := len(ids); n > maxProofDiagnoses {
		ids = ids[n-maxProofDiagnoses:]
	}
	var list []DiagnosisDetail
	for _, id := range ids {
		one, err := s.diagnosis(ctx, id)
		if errors.Is(err, ErrNotFound) {
			continue // retention removed it
		}
		if err != nil {
			return Proof{}, err
		}
		list = append(list, one)
	}
	p := Proof{
		State: "running", Who: callerOf(ctx).name(), Begin: s.deps.Live.Clock().Now.UTC(),
		Text: "rebuilds the incident from its records", Trials: []ProofTrial{}, Notes: []string{},
	}
	if !s.handlers.begin() {
		return Proof{}, fmt.Errorf("the controller stops: %w", ErrBusy)
	}
	if err := s.proofs.begin(d.ID, p); err != nil {
		s.handlers.end()
		return Proof{}, err
	}
	go func() {
		defer s.handlers.end()
		s.prove(d, p, list)
	}()
	return p, nil
}

// prove makes a proof and stores its result, unless the controller stops.
func (s *Server) prove(d *IncidentDetail, p Proof, list []DiagnosisDetail) {
	ctx, stop := context.WithTimeout(s.ended, maxProofTime)
	defer stop()
	result, err := s.proveVerdict(ctx, d, list)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no result within %v; weft prove has no limit", maxProofTime)
	}
	if err != nil {
		result = Proof{Outcome: "failed", Text: err.Error(), Runs: s.proofs.newest(d.ID).Runs, Trials: []ProofTrial{}, Notes: []string{}}
	}
	end := s.deps.Live.Clock().Now.UTC()
	result.State, result.Who, result.Begin, result.End = "done", p.Who, p.Begin, &end
	defer s.proofs.end(result)
	if s.ended.Err() != nil {
		return
	}
	store, done := context.WithTimeout(s.ended, s.cfg.RequestTimeout)
	defer done()
	text := result.Outcome + ": " + result.Text
	_, err = s.actOnIncident(store, record.IncidentAction{
		Time: end, Incident: d.ID, Kind: handling.Prove, Who: p.Who, Text: strings.ToValidUTF8(text[:min(len(text), handling.MaxText)], ""),
	})
	if err != nil {
		s.log.Error("the result of a proof was not stored", "incident", d.ID, "result", text, "err", err)
	}
}

// proveVerdict is ProveVerdict, with a panic as an error: records come from outside, and
// what they make a simulation do ends no service.
func (s *Server) proveVerdict(ctx context.Context, d *IncidentDetail, list []DiagnosisDetail) (p Proof, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("a proof panicked", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("the simulation panicked: %v; the log has the stack", r)
		}
	}()
	c := &ProofCase{Topology: newTopology(s.deps.Live.Fabric()), Incident: d, Diagnoses: list, Flows: ownRecords{s}}
	return s.deps.VerdictProver.ProveVerdict(ctx, c, s.proofs.progress)
}

// proofOdds is by how much a proof changes the odds that a verdict is right. Of right
// verdicts 92 of 93 were not refuted, of wrong ones 3 of 93: odds of 31 to 1, and of 1 to
// 90 (weft repro prove-verdicts --seed 13). The lesser is taken for both.
const proofOdds = 31

// countOdds is that of a proof by what switches counted. The verdict rests on the same counts, so
// it confirms no more than one further source does: it halves the doubt. What they refute is
// refuted all the same.
const countOdds = 2

// delays are the causes of late packets, whose proofs rest on when the packets were sent
// and not on counts.
var delays = []anomaly.Cause{anomaly.Storm, anomaly.SlowReceiver, anomaly.Incast, anomaly.Contention}

// withProof returns the confidence of a verdict, given the outcome of a proof. What is
// partly proven has another removal that does the same, or some of the effect: it
// changes nothing.
func withProof(confidence float64, cause, outcome string) float64 {
	odds := 1.0
	switch outcome {
	case "proven":
		odds = countOdds
		if slices.ContainsFunc(delays, func(c anomaly.Cause) bool { return c.String() == cause }) {
			odds = proofOdds
		}
	case "refuted":
		odds = 1 / float64(proofOdds)
	default:
		return confidence
	}
	c := math.Min(math.Max(confidence, 0.01), 0.99) // nothing moves what is certain, and no verdict is
	return c * odds / (c*odds + 1 - c)
}
