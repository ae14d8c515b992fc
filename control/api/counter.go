package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// CounterRequest defines a counter of the mirrored packets that match a filter.
type CounterRequest struct {
	Name   string `json:"name" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	Filter string `json:"filter" minLength:"1" maxLength:"1024"`
}

// Counter is a custom counter with its newest complete period.
type Counter struct {
	Name     string    `json:"name"`
	Filter   string    `json:"filter"`
	Created  time.Time `json:"created"`
	PeriodNs int64     `json:"period_ns"`
	CounterValue
}

// CounterValue is what was counted in one period.
type CounterValue struct {
	Packets uint64  `json:"packets" doc:"Packets, traces or latency samples in the period"`
	Bytes   uint64  `json:"bytes"`
	Flows   float64 `json:"flows" doc:"Distinct flows, estimated"`
	MeanNs  int64   `json:"mean_ns,omitempty" doc:"Counters of latency"`
	MinNs   int64   `json:"min_ns,omitempty"`
	MaxNs   int64   `json:"max_ns,omitempty"`
}

// CounterSeries is a counter over time.
type CounterSeries struct {
	Counter
	From     time.Time      `json:"from"`
	To       time.Time      `json:"to"`
	Series   []CounterPoint `json:"series" doc:"Oldest first"`
	Complete bool           `json:"complete" doc:"The whole range is covered; otherwise its oldest part is missing"`
}

// CounterPoint is one period of a counter.
type CounterPoint struct {
	Time     time.Time `json:"time"`
	PeriodNs int64     `json:"period_ns"`
	CounterValue
}

type counterInput struct {
	Range
	Name string `path:"name" maxLength:"64"`
	Step string `query:"step" maxLength:"16" doc:"Minimum step, e.g. 1s; default: fits the range"`
}

type countersInput struct {
	BuiltIn bool `query:"builtin" doc:"Include the built-in counters that counted something: totals of traces, load and latency of links"`
}

type counterName struct {
	Name string `path:"name" maxLength:"64"`
}

var errNoCounterAdmin = fmt.Errorf("counters: this controller does not receive mirrored packets: %w", ErrUnsupported)

func (s *Server) counterRoutes() {
	get(s, "/counters", "list-counters", "Counters", "List counters with their newest period",
		func(_ context.Context, in *countersInput) (Page[Counter], error) {
			if s.deps.CounterAdmin == nil {
				return Page[Counter]{}, errNoCounterAdmin
			}
			list := s.deps.CounterAdmin.Counters()
			if in.BuiltIn {
				list = append(s.deps.CounterAdmin.BuiltInCounters(), list...)
			}
			return Page[Counter]{Items: list}, nil
		})
	type addInput struct{ Body CounterRequest }
	post(s, "/counters", "add-counter", "Counters", "Count mirrored packets that match a filter",
		func(ctx context.Context, in *addInput) (Counter, error) {
			if s.deps.CounterAdmin == nil {
				return Counter{}, errNoCounterAdmin
			}
			if _, err := parseFilter(s.currentFabric().traces, in.Body.Filter); err != nil {
				return Counter{}, err
			}
			return s.deps.CounterAdmin.AddCounter(ctx, in.Body)
		})
	get(s, "/counters/{name}", "get-counter", "Counters", "One counter over time",
		coalesced(s, "get-counter", s.counterSeries))
	del(s, "/counters/{name}", "remove-counter", "Counters", "Delete a counter",
		func(ctx context.Context, in *counterName) error {
			if s.deps.CounterAdmin == nil {
				return errNoCounterAdmin
			}
			return s.deps.CounterAdmin.RemoveCounter(ctx, in.Name)
		})
}

func (s *Server) counterSeries(ctx context.Context, in *counterInput) (c CounterSeries, err error) {
	if s.deps.CounterAdmin == nil {
		return c, errNoCounterAdmin
	}
	q, err := s.query(in.Range, Paging{})
	if err != nil {
		return c, err
	}
	all := s.deps.CounterAdmin.Counters()
	i := slices.IndexFunc(all, func(c Counter) bool { return c.Name == in.Name })
	if i < 0 {
		return s.builtInSeries(q, in.Name)
	}
	q.Name = in.Name
	if q.Step, err = parseStep(in.Step, q.To.Sub(q.From), maxPoints); err != nil {
		return c, err
	}
	c = CounterSeries{Counter: all[i], From: q.From, To: q.To, Series: []CounterPoint{}}
	next, _, err := walkRecords(ctx, s, s.deps.Records.Counters, q, func(r *record.Counter) bool {
		c.Series = append(c.Series, CounterPoint{
			Time: r.Time, PeriodNs: int64(r.Period),
			CounterValue: CounterValue{Packets: r.Packets, Bytes: r.Bytes, Flows: r.Flows},
		})
		return len(c.Series) < maxPoints
	})
	c.Complete = next == ""
	slices.Reverse(c.Series)
	return c, err
}

// builtInSeries returns a built-in counter. The store does not keep these: the
// series covers the periods that the controller has in memory.
func (s *Server) builtInSeries(q record.Query, name string) (c CounterSeries, err error) {
	c = CounterSeries{Counter: Counter{Name: name}, From: q.From, To: q.To}
	if c.Series, err = s.deps.CounterAdmin.BuiltInCounter(name, q.From, q.To); err != nil {
		return c, err
	}
	if n := len(c.Series); n > 0 {
		c.PeriodNs, c.CounterValue = c.Series[n-1].PeriodNs, c.Series[n-1].CounterValue
		c.Complete = !c.Series[0].Time.After(q.From)
	}
	return c, nil
}
