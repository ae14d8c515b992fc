package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/conformance"
	"github.com/weft-telemetry/weft/topo"
)

// epoch0 is the current time of the fake fabric.
var epoch0 = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// fake is a controller and a store with a few records of each kind in memory.
type fake struct {
	mu       sync.Mutex
	fabric   *topo.Fabric
	state    *State
	batch    record.Batch
	probes   []Probe
	marks    []Mark
	counters []Counter
	faults   []Fault
	requests map[string]DiagnosisRequest
	queries  int           // store queries
	longest  int           // most records of one response
	delay    time.Duration // of every query
	fail     error
	passed   time.Duration // since epoch0
}

// advance moves the fabric's clock.
func (k *fake) advance(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.passed += d
}

func newFake(tb testing.TB) *fake {
	tb.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		tb.Fatal(err)
	}
	k := &fake{fabric: f, state: newState(f), requests: map[string]DiagnosisRequest{}}
	k.counters = []Counter{{Name: "tcp-syn", Filter: "tcp", Created: epoch0, PeriodNs: 1e9}}
	k.fill(200)
	return k
}

// newState returns the state of a healthy fabric.
func newState(f *topo.Fabric) *State {
	st := &State{Time: epoch0}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		st.Nodes = append(st.Nodes, NodeState{Name: n.Name, Health: "ok"})
		for _, p := range n.Ports {
			st.Ports = append(st.Ports, PortState{Node: n.Name, Port: p.ID, LoadBps: 1e9, LoadShare: .01, AgeMs: 3})
		}
	}
	return st
}

// flow returns the i-th flow between hosts of the fabric.
func (k *fake) flow(i int) model.FlowKey {
	hosts := k.fabric.Hosts()
	at := func(j int) netip.AddrPort {
		return netip.AddrPortFrom(k.fabric.Node(hosts[j%len(hosts)]).IPv4.Netip(), uint16(4000+j))
	}
	return model.NewFlowKey(at(i), at(i+5), model.UDP)
}

func (k *fake) fill(n int) {
	sw := k.fabric.Node(k.fabric.Switches()[0])
	second := k.fabric.Node(sw.Ports[len(sw.Ports)-1].Peer.Node)
	for i := range n {
		at := epoch0.Add(-time.Duration(i+1) * time.Second)
		flow := k.flow(i % 7)
		k.batch.Flows = append(k.batch.Flows, record.FlowSlot{
			Time: at, Slot: 10 * time.Millisecond, Flow: flow, Src: "h0", Dst: "h5", Packets: 10, Bytes: 10000, Exact: i%2 == 0,
			Path: []record.FlowHop{{Switch: sw.Name, Packets: 10}, {Switch: second.Name, Packets: 9}},
		})
		k.batch.Losses = append(k.batch.Losses, record.Loss{Time: at, Flow: flow, From: sw.Name, To: second.Name, Packets: 1, Sent: 10, Pattern: "random"})
		k.batch.Ports = append(k.batch.Ports, record.PortSample{
			Time: at, Node: sw.Name, Port: model.PortID(i%4 + 1), Queue: model.Bytes(i * 100), Latency: time.Microsecond, Load: model.Gbps, Paused: .25, Samples: 1,
		})
		k.batch.Traces = append(k.batch.Traces, record.Trace{
			Time: at, ID: uint64(i + 1), Flow: flow, End: "lost", Why: "debug", Latency: 7 * time.Microsecond,
			Hops: []record.TraceHop{
				{Time: at, Switch: sw.Name, In: 1, Out: 4, TTL: 64, DSCP: 26, ECN: 1, Depth: 1},
				{Time: at.Add(5 * time.Microsecond), Switch: second.Name, In: 1, TTL: 63, DSCP: 26, ECN: 3, Depth: 1},
			},
			Frame: frame(flow),
		})
		k.batch.Counters = append(k.batch.Counters, record.Counter{Time: at, Period: time.Second, Name: "tcp-syn", Packets: 5, Bytes: 300, Flows: 2.5})
	}
	for i := range 5 {
		k.batch.Diagnoses = append(k.batch.Diagnoses, k.diagnosis(i))
		inc := record.Incident{
			ID: fmt.Sprintf("inc-%d", i), Begin: epoch0.Add(-time.Duration(i+1) * time.Minute), Updated: epoch0.Add(-time.Duration(i) * time.Minute),
			Cause: "incast", Severity: "warning", Location: sw.Name, Summary: "incast at " + sw.Name,
			Body: encode(IncidentBody{
				Sentence: "five flows congest a queue", Confidence: .9, Remedy: "stagger them",
				Origin:   &PortRef{Node: sw.Name, Port: 1},
				Timeline: []TimelineEntry{{Time: epoch0, Kind: "begin", Source: "ports", Text: "queue grew"}},
				Evidence: []SourceEvidence{{Source: "ports", Says: "supports", Text: "deep queue", Count: 3, First: epoch0, Last: epoch0}},
				Culprits: []Participant{{Flow: &FlowRef{Flow: k.flow(1)}, Weight: .5}},
			}),
		}
		if i > 2 {
			inc.End = inc.Updated
		}
		k.batch.Incidents = append(k.batch.Incidents, inc)
	}
}

func (k *fake) diagnosis(i int) record.Diagnosis {
	sw := k.fabric.Node(k.fabric.Switches()[0])
	a, b := sw.Name+":1/3", sw.Name+":2/3"
	return record.Diagnosis{
		Time: epoch0.Add(-time.Duration(i+1) * time.Minute), ID: fmt.Sprintf("d-%d", i), Anomaly: "backpressure", RootCause: "flows",
		Initial: record.Port{Node: sw.Name, Port: 1, Peer: "h0"}, Victim: k.flow(i), Confidence: .8,
		Body: encode(DiagnosisBody{
			CauseDetail: "micro-burst", Evidence: []string{"three of three switches answered"}, Remedy: "move " + k.flow(9).String(),
			Culprits: []Participant{{Flow: &FlowRef{Flow: k.flow(1), Src: "h1"}, Weight: .7}, {Flow: &FlowRef{Flow: k.flow(9)}, Weight: .3}},
			Victims:  []FlowRef{{Flow: k.flow(i)}, {Flow: k.flow(8)}},
			PFCPath:  []PortRef{{Node: sw.Name, Port: 2}, {Node: sw.Name, Port: 1}},
			Graph: Graph{
				Ports: []GraphPort{{ID: a, Node: sw.Name, Port: 1, Initial: true}, {ID: b, Node: sw.Name, Port: 2, InPath: true, PausedPackets: 4, Packets: 9}},
				Flows: []GraphFlow{{ID: k.flow(1).String(), FlowRef: FlowRef{Flow: k.flow(1), Src: `<"h1`, Dst: "h6"}, Role: "culprit"}, {ID: k.flow(i + 2).String(), FlowRef: FlowRef{Flow: k.flow(i + 2)}, Role: "victim"}},
				Edges: []GraphEdge{{From: b, To: a, Kind: "port-port", Weight: 3}, {From: a, To: k.flow(1).String(), Kind: "port-flow", Weight: 5}, {From: k.flow(i + 2).String(), To: b, Kind: "flow-port", Weight: 2}},
			},
		}),
	}
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// frame returns an Ethernet frame of an IPv4 flow.
func frame(k model.FlowKey) []byte {
	b := make([]byte, 14+20+8)
	b[12] = 8
	b[14], b[17], b[22], b[23] = 0x45, 28, 64, byte(k.Proto)
	copy(b[26:], k.AppendTo(nil)[:8])
	copy(b[34:], k.AppendTo(nil)[8:12])
	return b
}

func (k *fake) Fabric() *topo.Fabric { return k.fabric }
func (k *fake) Clock() Clock {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Clock{Now: epoch0.Add(k.passed), Wall: time.Now(), Mode: "demo", Pace: .01, TargetPace: .01}
}
func (k *fake) Ready() error { return k.fail }

func (k *fake) State() *State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

func (k *fake) Health() Health {
	return Health{
		Time: epoch0, State: "ok", UptimeMs: 1000,
		Stages: []Stage{{
			Name: "transport", Title: "DTA over UDP", Unit: "reports", State: "ok", In: 10, Out: 9, QueueLimit: 100, Queued: 5,
			Losses: []StageLoss{{Reason: "socket", Count: 1}},
		}},
		Store:   Storage{Kind: "memory", Bytes: 1 << 20, MaxBytes: 1 << 30},
		Sources: []SourceHealth{{Source: "flowset", Switches: 1, AgeMs: 4}}, ReportAges: []ReportAge{{Switch: "tor0", Source: "flowset", Reports: 7, AgeMs: 4}}, Wrong: []WrongSource{{Switch: "tor0", Source: "flowset", State: "lying"}},
	}
}

// answer runs a store query over a list that is newest first, with a limit and a
// cursor.
func answer[R any](ctx context.Context, k *fake, q record.Query, all []R, at func(*R) time.Time, match func(*R) bool) (p record.Page[R], err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queries++
	if k.fail != nil {
		return p, k.fail
	}
	if k.delay > 0 {
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-time.After(k.delay):
		}
	}
	// A cursor is valid for the same query only.
	skip, same := 0, fmt.Sprintf("-%d-%d-%s-%s-%v", q.From.UnixNano(), q.To.UnixNano(), q.Node, q.Name, q.Flow)
	if q.After != "" {
		n, ok := strings.CutSuffix(q.After, same)
		if skip, err = strconv.Atoi(n); err != nil || !ok || skip < 0 {
			return p, fmt.Errorf("cursor %q: %w", q.After, store.ErrQuery)
		}
	}
	limit := q.Limit
	if limit <= 0 || limit > 1000 {
		limit = 1000
	}
	n := 0
	for i := range all {
		t := at(&all[i])
		if !q.From.IsZero() && t.Before(q.From) || !q.To.IsZero() && !t.Before(q.To) || !match(&all[i]) {
			continue
		}
		n++
		if n <= skip {
			continue
		}
		if len(p.Items) == limit {
			p.Next = strconv.Itoa(n-1) + same
			break
		}
		p.Items = append(p.Items, all[i])
	}
	k.longest = max(k.longest, len(p.Items))
	return p, nil
}

func (k *fake) Flows(ctx context.Context, q record.Query) (record.Page[record.FlowSlot], error) {
	return answer(ctx, k, q, k.batch.Flows, func(r *record.FlowSlot) time.Time { return r.Time }, func(r *record.FlowSlot) bool {
		return (q.Flow.IsZero() || q.Flow == r.Flow) && (q.Node == "" || slices.ContainsFunc(r.Path, func(h record.FlowHop) bool { return h.Switch == q.Node }))
	})
}

// reference is a store with the same records.
func (k *fake) reference(ctx context.Context) (*conformance.Reference, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queries++
	if k.fail != nil {
		return nil, k.fail
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(k.delay):
	}
	r := &conformance.Reference{}
	return r, r.Append(ctx, &record.Batch{Flows: k.batch.Flows, Losses: k.batch.Losses})
}

func (k *fake) FlowSums(ctx context.Context, q record.FlowSumQuery) (record.FlowSums, error) {
	r, err := k.reference(ctx)
	if err != nil {
		return record.FlowSums{}, err
	}
	return r.FlowSums(ctx, q)
}

func (k *fake) FlowGroups(ctx context.Context, q record.FlowGroupQuery) (record.FlowGroups, error) {
	r, err := k.reference(ctx)
	if err != nil {
		return record.FlowGroups{}, err
	}
	return r.FlowGroups(ctx, q)
}

func (k *fake) Losses(ctx context.Context, q record.Query) (record.Page[record.Loss], error) {
	return answer(ctx, k, q, k.batch.Losses, func(r *record.Loss) time.Time { return r.Time }, func(r *record.Loss) bool {
		return q.Flow.IsZero() || q.Flow == r.Flow
	})
}

func (k *fake) Ports(ctx context.Context, q record.Query) (record.Page[record.PortSample], error) {
	return answer(ctx, k, q, k.batch.Ports, func(r *record.PortSample) time.Time { return r.Time }, func(r *record.PortSample) bool {
		return (q.Node == "" || q.Node == r.Node) && (q.Port == 0 || q.Port == r.Port)
	})
}

func (k *fake) Traces(ctx context.Context, q record.Query) (record.Page[record.Trace], error) {
	return answer(ctx, k, q, k.batch.Traces, func(r *record.Trace) time.Time { return r.Time }, func(r *record.Trace) bool {
		return (q.Flow.IsZero() || q.Flow == r.Flow) && (q.Name == "" || q.Name == strconv.FormatUint(r.ID, 10)) && (q.End == "" || q.End == r.End)
	})
}

// fakeRecords implements Records.Counters: CounterAdmin has a method of the same name.
type fakeRecords struct{ *fake }

func (k fakeRecords) Counters(ctx context.Context, q record.Query) (record.Page[record.Counter], error) {
	return answer(ctx, k.fake, q, k.batch.Counters, func(r *record.Counter) time.Time { return r.Time }, func(r *record.Counter) bool {
		return q.Name == "" || q.Name == r.Name
	})
}

func (k *fake) Diagnoses(ctx context.Context, q record.Query) (record.Page[record.Diagnosis], error) {
	return answer(ctx, k, q, k.batch.Diagnoses, func(r *record.Diagnosis) time.Time { return r.Time }, func(r *record.Diagnosis) bool {
		return (q.Name == "" || q.Name == r.ID) && (q.Flow.IsZero() || q.Flow == r.Victim)
	})
}

func (k *fake) Incidents(ctx context.Context, q record.Query) (record.Page[record.Incident], error) {
	from := q.From
	q.From = time.Time{} // those that were active at some time of the range
	return answer(ctx, k, q, k.batch.Incidents, func(r *record.Incident) time.Time { return r.Begin }, func(r *record.Incident) bool {
		return (q.Name == "" || q.Name == r.ID) && (from.IsZero() || r.End.IsZero() || !r.End.Before(from))
	})
}

func (k *fake) StartProbe(_ context.Context, r ProbeRequest) (Probe, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := Probe{ID: fmt.Sprintf("p-%d", len(k.probes)), State: "running", Request: r, Begin: epoch0}
	k.probes = slices.Insert(k.probes, 0, p)
	return p, nil
}

func (k *fake) Probe(id string) (Probe, error) {
	for _, p := range k.Probes() {
		if p.ID == id {
			return p, nil
		}
	}
	return Probe{}, fmt.Errorf("probe %q: %w", id, ErrNotFound)
}

func (k *fake) Probes() []Probe {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.probes)
}

func (k *fake) SetMark(_ context.Context, r MarkRequest) (Mark, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := Mark{ID: fmt.Sprintf("m-%d", len(k.marks)), Request: r, State: "active", Begin: epoch0, End: epoch0.Add(time.Second)}
	k.marks = slices.Insert(k.marks, 0, m)
	return m, nil
}

func (k *fake) Marks() []Mark {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.marks)
}

func (k *fake) RemoveMark(_ context.Context, id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.marks)
	if k.marks = slices.DeleteFunc(k.marks, func(m Mark) bool { return m.ID == id }); len(k.marks) == n {
		return fmt.Errorf("mark %q: %w", id, ErrNotFound)
	}
	return nil
}

func (k *fake) AddCounter(_ context.Context, r CounterRequest) (Counter, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.ContainsFunc(k.counters, func(c Counter) bool { return c.Name == r.Name }) {
		return Counter{}, fmt.Errorf("counter %q exists already: %w", r.Name, ErrConflict)
	}
	c := Counter{Name: r.Name, Filter: r.Filter, Created: epoch0, PeriodNs: 1e9}
	k.counters = append(k.counters, c)
	slices.SortFunc(k.counters, func(a, b Counter) int { return cmp.Compare(a.Name, b.Name) })
	return c, nil
}

// Routes has a route of every switch.
func (k *fake) Routes(switches []model.NodeID, drift bool, limit int) (list []Route, omitted int) {
	list = []Route{}
	for _, id := range switches {
		if len(list) == limit || drift {
			omitted++
			continue
		}
		list = append(list, Route{Switch: k.Fabric().Node(id).Name, State: "same"})
	}
	return list, omitted
}

// FlowFindings has one finding, 10 s ago.
func (k *fake) FlowFindings(from, to time.Time) (f FlowFindings) {
	at := FindingTime{First: epoch0.Add(-10 * time.Second), Last: epoch0.Add(-9 * time.Second), Slots: 100}
	if at.First.Before(to) && at.Last.After(from) {
		f.Paths = []PathFinding{{
			Kind: "loop", Confirmed: true, FindingTime: at, At: PortRef{Node: "tor1"}, Switches: []string{"tor1", "leaf0"},
			AffectedFlows: AffectedFlows{Flows: []model.FlowKey{k.flow(1)}},
		}}
	}
	return f
}

func (k *fake) BuiltInCounters() []Counter { return []Counter{{Name: "traces"}} }

func (k *fake) BuiltInCounter(name string, from, _ time.Time) ([]CounterPoint, error) {
	if name != "traces" {
		return nil, fmt.Errorf("counter %q: %w", name, ErrNotFound)
	}
	return []CounterPoint{{Time: from, PeriodNs: 1000, CounterValue: CounterValue{Packets: 7}}}, nil
}

func (k *fake) Counters() []Counter {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.counters)
}

func (k *fake) RemoveCounter(_ context.Context, name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, c := range k.counters {
		if c.Name == name {
			k.counters = slices.Delete(k.counters, i, i+1)
			return nil
		}
	}
	return fmt.Errorf("counter %q: %w", name, ErrNotFound)
}

var errDisk = errors.New("disk /secret/path is on fire")

// newServer returns a server of a fake; change may modify its config and backends.
func newServer(tb testing.TB, change ...func(*Config, *Deps)) (*Server, *fake) {
	tb.Helper()
	k := newFake(tb)
	cfg := DefaultConfig()
	deps := Deps{
		Live: k, Records: fakeRecords{k}, Hub: NewEventHub(16, 64), Prober: k, Verifier: &fakeVerifier{}, VerdictProver: &fakeVerdictProver{}, Marker: k, CounterAdmin: k, Diagnoser: k, Lab: k,
		FlowAnalyses: k, Routes: k, Memory: fakeMemory{}, Handling: newBook(tb),
		Build: Build{Version: "0.0.0", Commit: "abc", Go: "go1.26", Platform: "linux/amd64"},
	}
	for _, c := range change {
		c(&cfg, &deps)
	}
	s, err := New(cfg, deps)
	if err != nil {
		tb.Fatal(err)
	}
	return s, k
}
