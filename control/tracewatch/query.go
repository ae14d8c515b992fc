package tracewatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Traces answers QueryTraces.
type Traces struct {
	Fields []string       `json:"fields"`
	Rows   [][]string     `json:"rows"` // values of the fields, by trace
	Traces []*trace.Trace `json:"-"`    // must not be changed
	// Evicted is how many kept traces were evicted: the answer may lack them.
	Evicted uint64 `json:"evicted"`
}

// QueryTraces returns the kept traces that match a filter and whose last mirror
// arrived between two instants, the second exclusive. Fields are the columns of
// Rows.
func (w *Watch) QueryTraces(text string, from, to model.Time, fields ...string) (*Traces, error) {
	f, err := w.schema.Parse(text)
	if err != nil {
		return nil, err
	}
	columns, err := w.schema.Columns(fields...)
	if err != nil {
		return nil, err
	}
	answer := &Traces{Fields: columns.Names()}
	w.mu.Lock()
	list := w.store.between(from, to)
	for _, n := range w.store.evicted {
		answer.Evicted += n
	}
	w.mu.Unlock()
	var v trace.View
	for _, t := range list {
		if f.Match(v.SetTrace(t)) {
			answer.Traces = append(answer.Traces, t)
			answer.Rows = append(answer.Rows, columns.Row(&v))
		}
	}
	return answer, nil
}

// userCounter is a user-defined counter.
type userCounter struct {
	name, filter string
}

// Errors of counters and marks.
var (
	ErrUnknown = errors.New("tracewatch: no such counter")
	ErrFull    = errors.New("tracewatch: limit reached; cannot add a")
)

// AddCounter counts the packets that match a filter from now on, and replaces an
// earlier counter of that name.
func (w *Watch) AddCounter(name, text string) error {
	f, err := w.schema.Parse(text)
	if err != nil {
		return err
	}
	if name == "" || slices.Contains(totals, name) || strings.Contains(name, "/") {
		return fmt.Errorf("tracewatch: counter %q, want a name without / that is not one of %s", name, strings.Join(totals, ", "))
	}
	w.mu.Lock()
	at := slices.IndexFunc(w.named, func(n userCounter) bool { return n.name == name })
	switch {
	case at >= 0:
		w.named[at].filter = f.String()
	case len(w.named) >= w.cfg.MaxNamed:
		w.mu.Unlock()
		return fmt.Errorf("%w counter beside %d", ErrFull, w.cfg.MaxNamed)
	default:
		w.named = append(w.named, userCounter{name, f.String()})
	}
	w.mu.Unlock()
	for _, feed := range w.partitions {
		feed.mu.Lock()
		feed.a.AddCounter(trace.CustomCounter{Name: name, Matches: func(t *trace.Trace) bool { return f.Match(feed.view.SetTrace(t)) }})
		feed.mu.Unlock()
	}
	return nil
}

// RemoveCounter ends a user-defined counter. Its counts stay.
func (w *Watch) RemoveCounter(name string) error {
	w.mu.Lock()
	at := slices.IndexFunc(w.named, func(n userCounter) bool { return n.name == name })
	if at >= 0 {
		w.named = slices.Delete(w.named, at, at+1)
	}
	w.mu.Unlock()
	if at < 0 {
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	for _, feed := range w.partitions {
		feed.mu.Lock()
		feed.a.RemoveCounter(name)
		feed.mu.Unlock()
	}
	return nil
}

// Point is a counter's value in one period.
type Point struct {
	From model.Time `json:"from"`
	To   model.Time `json:"to"`
	// Count is of packets, of traces, or of measurements of a delay.
	Count uint64        `json:"count"`
	Bytes model.Bytes   `json:"bytes,omitempty"`   // of loads
	Flows float64       `json:"flows,omitempty"`   // of loads, estimated
	Mean  time.Duration `json:"mean_ns,omitempty"` // of delays
	Min   time.Duration `json:"min_ns,omitempty"`
	Max   time.Duration `json:"max_ns,omitempty"`
}

// totals are the counters of all traces.
var totals = []string{"traces", "arrived", "lost", "looped", "unsettled", "lost-mirrors"}

// IsBuiltIn reports whether a name is that of a built-in counter. Custom counters
// cannot have such names.
func IsBuiltIn(name string) bool { return slices.Contains(totals, name) || strings.Contains(name, "/") }

// Prefixes of counters of a location.
const (
	linkPrefix    = "link/"
	latencyPrefix = "latency/"
	muxPrefix     = "mux/"
)

// locations finds ports and switches by their names.
type locations struct {
	fabric *topo.Fabric
	ports  map[string][]model.Port // by PortName and by LinkName; several links may have one name
}

func locationsOf(f *topo.Fabric) locations {
	p := locations{f, map[string][]model.Port{}}
	for _, id := range f.Switches() {
		for i := range f.Node(id).Ports {
			port := model.Port{Node: id, Port: model.PortID(i + 1)}
			name, link := f.PortRef(port), f.LinkName(port)
			p.ports[name] = []model.Port{port}
			if link != name {
				p.ports[link] = append(p.ports[link], port)
			}
		}
	}
	return p
}

// QueryCounter returns a counter's value in each complete period that lies between
// two instants. Names are those that Counters lists.
func (w *Watch) QueryCounter(name string, from, to model.Time) ([]Point, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	read, err := w.counter(name)
	if err != nil {
		return nil, err
	}
	list := []Point{}
	for _, p := range w.periods {
		if p.From >= from && p.To <= to {
			one := Point{From: p.From, To: p.To}
			read(p.Counters, &one)
			list = append(list, one)
		}
	}
	return list, nil
}

// counter returns the function that reads a counter. The lock is held.
func (w *Watch) counter(name string) (func(c *trace.Counters, p *Point), error) {
	if at := slices.Index(totals, name); at >= 0 {
		return func(c *trace.Counters, p *Point) {
			p.Count = [...]uint64{c.Traces, c.Arrived, c.Lost, c.Looped, c.Unsettled, c.MirrorsLost}[at]
		}, nil
	}
	if place, ok := strings.CutPrefix(name, linkPrefix); ok && w.places.ports[place] != nil {
		return func(c *trace.Counters, p *Point) {
			var sum trace.Load
			for _, port := range w.places.ports[place] {
				if l := c.Links[port]; l != nil {
					sum.Merge(l)
				}
			}
			p.load(&sum)
		}, nil
	}
	if place, ok := strings.CutPrefix(name, latencyPrefix); ok && w.places.ports[place] != nil {
		return func(c *trace.Counters, p *Point) {
			var sum trace.Latency
			for _, port := range w.places.ports[place] {
				if l := c.Latency[port]; l != nil {
					sum.Merge(l)
				}
			}
			p.latency(&sum)
		}, nil
	}
	if place, ok := strings.CutPrefix(name, muxPrefix); ok {
		if id, ok := w.fabric.ByName(place); ok {
			return func(c *trace.Counters, p *Point) {
				if l := c.Mux[id]; l != nil {
					p.latency(l)
				}
			}, nil
		}
	}
	own := slices.ContainsFunc(w.named, func(n userCounter) bool { return n.name == name })
	for _, p := range w.periods {
		own = own || p.Counters.Custom[name] != nil
	}
	if !own {
		return nil, fmt.Errorf("%w: %q, want %s, one of %s, %s or %s followed by a location, or one that was added", ErrUnknown, name, strings.Join(totals, ", "), linkPrefix, latencyPrefix, muxPrefix)
	}
	return func(c *trace.Counters, p *Point) {
		if l := c.Custom[name]; l != nil {
			p.load(l)
		}
	}, nil
}

func (p *Point) load(l *trace.Load) { p.Count, p.Bytes, p.Flows = l.Packets, l.Bytes, l.Flows.Count() }

func (p *Point) latency(l *trace.Latency) {
	p.Count, p.Mean, p.Min, p.Max = l.Count, l.Mean(), l.Min, l.Max
}

// Counters lists the counters that have counted something in the complete
// periods, and all user-defined ones.
func (w *Watch) Counters() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]bool{}
	for _, p := range w.periods {
		for port := range p.Counters.Links {
			seen[linkPrefix+w.portName(port)] = true
		}
		for port := range p.Counters.Latency {
			seen[latencyPrefix+w.portName(port)] = true
		}
		for id := range p.Counters.Mux {
			seen[muxPrefix+w.fabric.Node(id).Name] = true
		}
		for name := range p.Counters.Custom {
			seen[name] = true
		}
	}
	for _, n := range w.named {
		seen[n.name] = true
	}
	list := make([]string, 0, len(seen))
	for name := range seen {
		list = append(list, name)
	}
	slices.Sort(list)
	return append(slices.Clone(totals), list...)
}

// portName is the link's name, if it is unique.
func (w *Watch) portName(p model.Port) string {
	if name := w.fabric.LinkName(p); len(w.places.ports[name]) == 1 {
		return name
	}
	return w.fabric.PortRef(p)
}
