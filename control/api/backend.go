package api

import (
	"context"
	"errors"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// Errors that a backend wraps to choose the answer's status; the text around
// them is shown to the client. Any other error becomes a 500 without its text,
// which goes to the log.
var (
	ErrNotFound    = errors.New("not found")     // 404
	ErrInvalid     = errors.New("invalid")       // 422
	ErrConflict    = errors.New("conflict")      // 409
	ErrBusy        = errors.New("busy")          // 429
	ErrUnsupported = errors.New("not supported") // 501
)

// Live is the controller's present knowledge. Its methods answer at once, from
// memory, and may be called by many goroutines.
type Live interface {
	Fabric() *topo.Fabric
	// Clock tells the fabric's time, which is not the wall's in a simulation.
	Clock() Clock
	// State returns the newest snapshot, which nobody changes any more. The API
	// publishes the differences of successive snapshots as events.
	State() *State
	// Health returns the pipeline's account. The answer is the caller's.
	Health() Health
	// Ready returns why the controller cannot serve yet, or nil.
	Ready() error
}

// Records answers questions about the past, newest first: a store. No answer is
// longer than the store's own limit.
type Records interface {
	Flows(context.Context, record.Query) (record.Page[record.FlowSlot], error)
	Losses(context.Context, record.Query) (record.Page[record.Loss], error)
	Ports(context.Context, record.Query) (record.Page[record.PortSample], error)
	Traces(context.Context, record.Query) (record.Page[record.Trace], error)
	Counters(context.Context, record.Query) (record.Page[record.Counter], error)
	Diagnoses(context.Context, record.Query) (record.Page[record.Diagnosis], error)
	Incidents(context.Context, record.Query) (record.Page[record.Incident], error)
}

// Prober sends guided probes. StartProbe returns at once; the probe goes on and
// its changes are published as events.
type Prober interface {
	StartProbe(context.Context, ProbeRequest) (Probe, error)
	Probe(id string) (Probe, error)
	Probes() []Probe // newest first
}

// Marker sets debug marks: packets of a flow that every switch mirrors.
type Marker interface {
	SetMark(context.Context, MarkRequest) (Mark, error)
	Marks() []Mark // newest first
	RemoveMark(ctx context.Context, id string) error
}

// CounterAdmin counts the packets that match a filter.
type CounterAdmin interface {
	AddCounter(context.Context, CounterRequest) (Counter, error)
	Counters() []Counter // by name
	RemoveCounter(ctx context.Context, name string) error
}

// Diagnoser looks into a flow that someone finds slow.
type Diagnoser interface {
	// RequestDiagnosis starts a diagnosis and returns the complaint's id at once. A flow
	// that is under diagnosis already gets the same id; one that no host sends is
	// ErrNotFound.
	RequestDiagnosis(ctx context.Context, flow model.FlowKey, since time.Time) (id string, err error)
	// AddCompleted notes a complaint about a flow that ended at a time, with what was
	// found of it before, and returns the complaint's id.
	AddCompleted(flow model.FlowKey, at time.Time, found []record.Diagnosis) (id string)
	// DiagnosisRequest tells what has become of it.
	DiagnosisRequest(ctx context.Context, id string) (DiagnosisRequest, error)
	DiagnosisRequests() []DiagnosisRequest // newest first
}

// DiagnosisRequest is a report of a slow flow and what was found, which may be nothing
// yet, nothing at all, or several diagnoses.
type DiagnosisRequest struct {
	ID        string
	Flow      model.FlowKey
	Time      time.Time
	Done      bool
	Diagnoses []record.Diagnosis
}

// Lab breaks the fabric on purpose. Only a simulated fabric has one.
type Lab interface {
	FaultKinds() []FaultKind
	Inject(context.Context, FaultRequest) (Fault, error)
	Faults() []Fault // newest first
	// SetPace sets how many seconds of the fabric pass in one of the wall.
	SetPace(context.Context, float64) error
}
