package api

import (
	"context"
	"errors"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// Errors that a backend wraps to choose the response status. The client sees the
// text around them. Any other error becomes a 500 whose text goes to the log only.
var (
	ErrNotFound    = errors.New("not found")     // 404
	ErrInvalid     = errors.New("invalid")       // 422
	ErrConflict    = errors.New("conflict")      // 409
	ErrBusy        = errors.New("busy")          // 429
	ErrUnsupported = errors.New("not supported") // 501
)

// Live is the controller's current state. Its methods read memory, never block,
// and are safe for concurrent use.
type Live interface {
	Fabric() *topo.Fabric
	// Clock returns the fabric's time, which differs from wall-clock time in a
	// simulation.
	Clock() Clock
	// State returns the newest snapshot, which is immutable. The API publishes the
	// differences between successive snapshots as events.
	State() *State
	// Health returns the state of the pipeline. The caller owns the result.
	Health() Health
	// Ready returns nil once the controller can serve, and the reason until then.
	Ready() error
}

// Records is a store: it answers queries for past records, newest first. The
// store's limit bounds every page.
type Records interface {
	Flows(context.Context, record.Query) (record.Page[record.FlowSlot], error)
	Losses(context.Context, record.Query) (record.Page[record.Loss], error)
	Ports(context.Context, record.Query) (record.Page[record.PortSample], error)
	Traces(context.Context, record.Query) (record.Page[record.Trace], error)
	Counters(context.Context, record.Query) (record.Page[record.Counter], error)
	Diagnoses(context.Context, record.Query) (record.Page[record.Diagnosis], error)
	Incidents(context.Context, record.Query) (record.Page[record.Incident], error)
	// FlowSums and FlowGroups add up all flow records of a range.
	FlowSums(context.Context, record.FlowSumQuery) (record.FlowSums, error)
	FlowGroups(context.Context, record.FlowGroupQuery) (record.FlowGroups, error)
}

// Prober sends guided probes. StartProbe returns immediately; the probe keeps
// running and its progress is published as events.
type Prober interface {
	StartProbe(context.Context, ProbeRequest) (Probe, error)
	Probe(id string) (Probe, error)
	Probes() []Probe // newest first
}

// Verifier checks whether the fault of an incident is still there. VerifyIncident
// returns immediately; done is called once with the result, and must not block. An
// incident whose fault is gone is closed, one whose fault is still there is opened
// again.
type Verifier interface {
	VerifyIncident(ctx context.Context, d *IncidentDetail, done func(Verification)) (Verification, error)
}

// Marker sets debug marks. Every switch mirrors marked packets.
type Marker interface {
	SetMark(context.Context, MarkRequest) (Mark, error)
	Marks() []Mark // newest first
	RemoveMark(ctx context.Context, id string) error
}

// CounterAdmin counts the packets that match a filter.
type CounterAdmin interface {
	AddCounter(context.Context, CounterRequest) (Counter, error)
	Counters() []Counter        // custom ones, by name
	BuiltInCounters() []Counter // that counted something in the newest complete period
	// BuiltInCounter returns the complete periods of a built-in counter in a range,
	// oldest first. An unknown name is ErrNotFound.
	BuiltInCounter(name string, from, to time.Time) ([]CounterPoint, error)
	RemoveCounter(ctx context.Context, name string) error
}

// Diagnoser diagnoses flows that a client reports as slow.
type Diagnoser interface {
	// RequestDiagnosis starts a diagnosis and returns the request's id immediately.
	// A flow under diagnosis keeps its id. A flow that no host sends is ErrNotFound.
	RequestDiagnosis(ctx context.Context, flow model.FlowKey, since time.Time) (id string, err error)
	// AddCompleted adds a completed request for a flow that ended at the given time,
	// with the diagnoses recorded for it, and returns the request's id.
	AddCompleted(flow model.FlowKey, at time.Time, found []record.Diagnosis) (id string)
	// DiagnosisRequest returns one request with its diagnoses so far.
	DiagnosisRequest(ctx context.Context, id string) (DiagnosisRequest, error)
	DiagnosisRequests() []DiagnosisRequest // newest first
}

// DiagnosisRequest is a client's report of a slow flow and its diagnoses: none so
// far while Done is false, none or several after that.
type DiagnosisRequest struct {
	ID        string
	Flow      model.FlowKey
	Time      time.Time
	Done      bool
	Diagnoses []record.Diagnosis
}

// Lab injects faults. Only a simulated fabric has one.
type Lab interface {
	FaultKinds() []FaultKind
	Inject(context.Context, FaultRequest) (Fault, error)
	Faults() []Fault // newest first
	// SetPace sets the simulated seconds per wall-clock second.
	SetPace(context.Context, float64) error
}
