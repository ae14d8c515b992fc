package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/report"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/sim/truth"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// Result is the result of a run. Its JSON depends on the scenario only: Wall
// and Truth are not in it.
type Result struct {
	Scenario string   `json:"scenario"`
	About    string   `json:"about,omitempty"`
	Verdict  Verdict  `json:"verdict"`
	Expected []Judged `json:"expected"`
	Injected []string `json:"injected"` // faults and traffic that is meant to congest, in sentences

	Deadlocks     []Deadlock `json:"deadlocks"`
	LosslessDrops int64      `json:"lossless_drops"` // buffer full, of priorities under PFC
	Jobs          []Jobs     `json:"jobs"`
	Skipped       *Skipped   `json:"skipped,omitempty"` // nil: the run went to its end
	// CriticalPaths are those of traffic whose flows wait for each other.
	CriticalPaths []CriticalPath `json:"critical_paths"`
	Telemetry     *Telemetry     `json:"telemetry,omitempty"` // nil where no switch runs a program

	// Diagnoses is the outcome of the agents' diagnosis requests, the most
	// severe first.
	Diagnoses         []diagnose.VerdictView `json:"diagnoses"`
	DiagnosisRequests *DiagnosisRequests     `json:"diagnosis_requests,omitempty"` // nil without agents

	Summary report.Summary `json:"summary"`

	// Figures are the numbers that the run can be judged by; those that it does not have
	// are missing. Faults are the unexpected ones, in words.
	Figures map[string]float64 `json:"-"`
	Faults  []string           `json:"unexpected_faults,omitempty"`

	Run   report.Run      `json:"-"` // Wall is not set
	Wall  time.Duration   `json:"-"`
	Truth *truth.Recorder `json:"-"`

	// Intent is the intended routes over the run, by simulated time without
	// Base.
	Intent *topo.Intent `json:"-"`
}

// Deadlock is a cycle of ports that were stuck, each waiting for the next.
type Deadlock struct {
	Ports      []string   `json:"ports"` // "s0 Ethernet8 → s1"
	Formed     model.Time `json:"formed"`
	Persistent bool       `json:"persistent"`      // to the end of the run
	Ended      model.Time `json:"ended,omitempty"` // if it is not persistent
}

// result collects the result of a session after its run.
func (x *session) result() *Result {
	r := &Result{
		Scenario: x.s.Name, About: x.s.About, Truth: x.recorder.Recorder, Intent: x.net.Intent(),
		LosslessDrops: x.recorder.losslessDrops,
	}
	r.Run = report.Run{
		Title: x.s.Name, Fabric: describe(x.fabric), Seed: x.s.Seed,
		End: x.clock(x.net.Now()), PacketHops: uint64(x.net.Counts.Hops),
		Flows: x.flowResults(), Computations: x.computations(), Pauses: x.pauses(), Drops: x.drops(),
	}
	r.Run.Ports, r.Run.Interval = x.series()
	r.Deadlocks, r.Jobs, r.CriticalPaths = x.deadlocks(), x.jobs(), x.criticalPaths()
	r.Injected, r.Telemetry = x.injected(), x.telemetry()
	r.Diagnoses, r.DiagnosisRequests = x.diagnoses()
	if x.repeats != nil {
		r.Skipped = x.repeats.skipped
	}
	r.Run.Notes = x.collectNotes(r)
	r.judge(x)
	for i := range r.Diagnoses {
		if r.Diagnoses[i].Anomaly != anomaly.None {
			r.Run.Diagnoses = append(r.Run.Diagnoses, r.Diagnoses[i].Sentence())
		}
	}
	r.Run.Injected, r.Run.Expected, r.Run.Verdict = r.Injected, r.Expected, string(r.Verdict)
	r.Summary = r.Run.Summarize()
	return r
}

// describe returns a fabric's description in a line.
func describe(f *topo.Fabric) string {
	rates := make(map[model.Rate]bool)
	for _, l := range f.Links() {
		rates[l.Rate] = true
	}
	list := slices.Sorted(maps.Keys(rates))
	of := ""
	switch len(list) {
	case 0:
	case 1:
		of = " of " + list[0].String()
	default:
		of = fmt.Sprintf(" of %v to %v", list[0], list[len(list)-1])
	}
	return fmt.Sprintf("%s: %s, %s, %s%s", cmp.Or(f.Name(), "fabric"),
		plural.Count(len(f.Hosts()), "host"), plural.Count(len(f.Switches()), "switch"), plural.Count(len(f.Links()),
			"link"), of)
}

// flowResults lists the flows that started, in the order of the network's
// records, and those that should have.
func (x *session) flowResults() []report.FlowResult {
	var out []report.FlowResult
	seen := make([]bool, x.flows)
	for _, rec := range x.net.Records() {
		seen[rec.ID] = true
		if !rec.Finished && x.repeats.skips(rec.ID, &rec.Spec) {
			continue
		}
		f := x.flowResult(rec.ID)
		f.Delivered, f.Retransmitted = model.Bytes(rec.Sent), x.packets(rec.Retransmitted)
		f.Start, f.Finish, f.Finished, f.Ideal = x.clock(rec.Start), x.clock(rec.Finish), rec.Finished, rec.Ideal.Duration()
		if f.Bytes == 0 {
			f.Bytes = f.Delivered // it had no size
		}
		out = append(out, f)
	}
	for id := range x.flows {
		if _, spec := x.net.FlowKey(id); seen[id] || timeOf(spec.Start) > x.net.Now() || spec.IsComputation() || x.repeats.skips(id, &spec) {
			continue
		}
		f := x.flowResult(id)
		f.Delivered = min(x.recorder.Flow(id, false).Payload, f.Bytes)
		out = append(out, f)
	}
	return out
}

func (x *session) computations() []report.Computation {
	var out []report.Computation
	for _, r := range x.net.Computations() {
		if r.Finish == r.Start {
			continue // a join, or nothing to do
		}
		out = append(out, report.Computation{
			Host: x.fabric.Node(r.Spec.Src).Name, Core: r.Spec.Core, Group: x.s.Traffic[x.partOf(r.ID)].Name,
			Start: x.clock(r.Start), Finish: x.clock(r.Finish), Planned: r.Ideal.Duration(),
		})
	}
	return out
}

// flowResult returns what is known of a flow before it starts.
func (x *session) flowResult(id int) report.FlowResult {
	key, spec := x.net.FlowKey(id)
	transport := spec.Transport.String()
	if spec.Transport == traffic.RDMA && x.s.Sim.Congestion != nil && !spec.NoCC {
		transport = x.s.Sim.Congestion.Traits().Name
	}
	return report.FlowResult{
		Src: x.fabric.Node(spec.Src).Name, Dst: x.fabric.Node(spec.Dst).Name, Key: key, Priority: spec.Priority,
		Transport: transport, Group: x.s.Traffic[x.partOf(id)].Name, Bytes: spec.Bytes, Start: x.clock(timeOf(spec.Start)),
	}
}

// partOf returns the traffic item of a flow.
func (x *session) partOf(id int) int {
	return sort.Search(len(x.parts), func(i int) bool { return x.parts[i].end > id })
}

// packets returns the minimum number of packets that carry that many bytes.
func (x *session) packets(bytes int64) uint64 {
	mtu := int64(x.s.Sim.MTU)
	return uint64((bytes + mtu - 1) / mtu)
}

func (x *session) pauses() []report.PauseEvent {
	out := make([]report.PauseEvent, len(x.recorder.frames))
	for i, f := range x.recorder.frames {
		out[i] = report.PauseEvent{
			At: x.clock(f.at), Node: x.fabric.Node(f.port.Node).Name, ID: f.port.Node, Switch: f.port.Switch() != nil,
			Port: f.port.ID, Interface: x.interfaceName(f.port.Node, f.port.ID), Priority: f.prio, Pause: f.stop,
		}
		if t := x.s.Sim.PauseTime; f.stop && t > 0 {
			out[i].Hold = pfc.QuantaOf(t, f.port.Rate()).Duration(f.port.Rate())
		}
	}
	// Nodes run one after the other, so frames are out of order.
	slices.SortStableFunc(out, func(a, b report.PauseEvent) int { return cmp.Compare(a.At, b.At) })
	return out
}

// interfaceName returns a port's name, such as "Ethernet8".
func (x *session) interfaceName(node model.NodeID, port model.PortID) string {
	return x.fabric.Node(node).Port(port).Name
}

func (x *session) drops() (out []report.Drop) {
	for _, p := range x.net.Ports() {
		for why, n := range p.Drops {
			if n > 0 {
				out = append(out, report.Drop{
					Node: x.fabric.Node(p.Node).Name, ID: p.Node, Port: p.ID,
					Interface: x.interfaceName(p.Node, p.ID), Reason: sim.Reason(why).String(), Packets: uint64(n),
				})
			}
		}
	}
	return out
}

// series returns the samples of the switches' ports. The queue of a sample is
// its maximum since the last one, so no burst is missed.
func (x *session) series() ([]report.PortSeries, time.Duration) {
	s := x.recorder.Series()
	if s == nil {
		return nil, 0
	}
	out := make([]report.PortSeries, len(s.Ports))
	for j, id := range s.Ports {
		port := x.fabric.Port(id)
		out[j] = report.PortSeries{
			Node: x.fabric.Node(id.Node).Name, ID: id.Node, Port: id.Port, Interface: port.Name,
			Peer: x.fabric.Node(port.Peer.Node).Name, Rate: port.Rate, Samples: make([]report.Sample, len(s.Times)),
		}
		for i, at := range s.Times {
			m := s.At(i, j)
			out[j].Samples[i] = report.Sample{At: x.clock(at), Queue: m.Peak, Tx: m.Sent, Paused: s.Share(i, j)}
		}
	}
	return out, s.Interval.Duration()
}

func (x *session) deadlocks() []Deadlock {
	out := []Deadlock{}
	for _, d := range x.recorder.Deadlocks() {
		one := Deadlock{Formed: x.clock(d.Formed), Persistent: d.Persistent}
		if !d.Persistent {
			one.Ended = x.clock(d.Ended)
		}
		for _, n := range d.Cycle {
			one.Ports = append(one.Ports, x.fabric.PortName(n.Port))
		}
		out = append(out, one)
	}
	return out
}

// injected describes each cause, where and when. Truth lists the faults after
// the traffic.
func (x *session) injected() []string {
	causes := x.recorder.Causes()
	out := make([]string, len(causes))
	for i := range causes {
		c := &causes[i]
		what := c.Text
		if f := i - (len(causes) - len(x.s.Faults)); f >= 0 {
			what = x.s.Faults[f].Kind + x.faultLocation(c, x.s.Faults[f].Fault)
		}
		out[i] = fmt.Sprintf("%s from %v", what, x.clock(c.Begin))
		if c.End != engine.Forever {
			out[i] += fmt.Sprintf(" to %v", x.clock(c.End))
		}
	}
	return out
}

// faultLocation returns the locations of a fault, as far as truth knows them.
func (x *session) faultLocation(c *truth.Cause, f sim.Fault) string {
	var locations []string
	for _, p := range c.Ports {
		locations = append(locations, x.fabric.PortName(p))
	}
	for _, id := range c.Nodes {
		locations = append(locations, x.fabric.Node(id).Name)
	}
	if len(locations) == 0 {
		return " (" + f.String() + ")"
	}
	return " at " + strings.Join(locations, ", ")
}

// clock returns the reading of an accurate clock.
func (x *session) clock(t engine.Time) model.Time { return x.s.Base + t.Model() }
