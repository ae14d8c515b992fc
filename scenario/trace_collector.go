package scenario

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/symptom"
	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Traces are the settings of trace assembly, where the scenario expects
// something of traces.
type Traces struct {
	CloseAfter  time.Duration // after which a trace is complete
	RouteSettle time.Duration // after a change of routes, while packets may take old or new ones
}

// DefaultTraces fits runs of milliseconds.
func DefaultTraces() Traces {
	return Traces{CloseAfter: time.Millisecond, RouteSettle: time.Millisecond}
}

// traceCollector assembles the mirrors of a run into traces as they arrive, and
// knows only them and the intended routes.
type traceCollector struct {
	first, end dta.ListID
	assemblers []*trace.Assembler // by list
	judge      *trace.Judge
	symptoms   *symptom.Collector
	complete   uint64 // traces
	malformed  uint64 // malformed mirrors
}

// traced returns the program that mirrors, if the scenario expects something of
// traces.
func (s *Scenario) traced() (program int, ok bool) {
	if s.ExpectTraces == nil {
		return 0, false
	}
	program = slices.IndexFunc(s.Telemetry, func(p Program) bool { return p.Kind == "mirror" })
	return program, program >= 0
}

// collectTraces returns a sink that passes mirrors to analyzers before the
// given sink.
func (x *session) collectTraces(sink simhost.Sink) (simhost.Sink, error) {
	program, ok := x.s.traced()
	if !ok {
		return sink, nil
	}
	t := &traceCollector{first: x.s.FirstList(program), end: x.s.FirstList(program + 1)}
	cfg := trace.DefaultConfig()
	cfg.CloseAfter, cfg.RouteSettle, cfg.MaxTraces = x.s.Traces.CloseAfter, x.s.Traces.RouteSettle, 1<<20
	var err error
	if t.judge, err = trace.NewJudge(trace.DefaultJudgeConfig(), x.fabric); err != nil {
		return nil, err
	}
	if t.symptoms, err = symptom.New(x.net.Intent()); err != nil {
		return nil, err
	}
	for range t.end - t.first {
		a, err := trace.NewAssembler(cfg, x.net.Intent(), t.addTrace)
		if err != nil {
			return nil, err
		}
		t.assemblers = append(t.assemblers, a)
	}
	x.collector = t
	return func(at model.Time, from model.NodeID, datagram []byte) {
		t.addDatagram(at, datagram)
		sink(at, from, datagram)
	}, nil
}

func (t *traceCollector) addTrace(tr *trace.Trace) {
	t.complete++
	t.judge.AddTrace(tr)
	t.symptoms.AddTrace(tr)
}

// addDatagram adds the mirrors of a datagram.
func (t *traceCollector) addDatagram(at model.Time, datagram []byte) {
	var r dta.Reader
	if r.Reset(datagram) != nil {
		t.malformed++
		return
	}
	for rep := (dta.Report{}); r.Next(&rep); {
		if rep.Primitive != dta.Append || rep.List < t.first || rep.List >= t.end {
			continue
		}
		var m mirror.Mirror
		if _, err := m.Parse(rep.Data); err != nil {
			t.malformed++
			continue
		}
		t.assemblers[rep.List-t.first].AddMirror(at, &m)
	}
}

// finish closes the traces that are complete at the end of the run. The others
// are not judged: their packets were in flight.
func (t *traceCollector) finish(now model.Time) {
	for _, a := range t.assemblers {
		a.Advance(now)
	}
}
