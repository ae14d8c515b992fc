package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// traceEvent is an event of the Trace Event Format, which Perfetto
// (ui.perfetto.dev) and Chrome open. Times are in microseconds.
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	At    *float64       `json:"ts,omitempty"`
	For   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

func micros(t model.Time) *float64 {
	us := float64(t) / 1e3
	return &us
}

func lengthMicros(d time.Duration) *float64 { return micros(model.Time(d)) }

// WritePerfetto writes the run as a timeline, one track group for each node: the
// flows that a host sends and what it computes, the pauses of ports, and the
// queues of the ports with the deepest ones. Flows that overlap are on tracks
// of their own; an unfinished one lasts to the end of the run.
func (r *Run) WritePerfetto(w io.Writer) error {
	out := bufio.NewWriter(w)
	t := timeline{out: out, enc: json.NewEncoder(out), nodes: make(map[string]int)}
	fmt.Fprint(out, `{"displayTimeUnit":"ns","traceEvents":[`+"\n") // errors stay with out and come from Flush
	t.flows(r)
	t.computations(r)
	t.pauses(r)
	t.queues(r)
	fmt.Fprintln(out, "]}")
	return cmp.Or(t.err, out.Flush())
}

// timeline writes events.
type timeline struct {
	out   *bufio.Writer
	enc   *json.Encoder
	err   error
	any   bool
	nodes map[string]int // pids, from 1
}

func (t *timeline) write(e traceEvent) {
	if t.any {
		fmt.Fprint(t.out, ",")
	}
	t.any = true
	if err := t.enc.Encode(e); t.err == nil {
		t.err = err
	}
}

// node returns the pid of a node.
func (t *timeline) node(name string) int {
	pid, known := t.nodes[name]
	if !known {
		pid = len(t.nodes) + 1
		t.nodes[name] = pid
		t.write(traceEvent{Name: "process_name", Phase: "M", PID: pid, Args: map[string]any{"name": name}})
	}
	return pid
}

// track names a track of a node.
func (t *timeline) track(pid, tid int, name string) {
	t.write(traceEvent{Name: "thread_name", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
}

// Tracks of a node: flows count from 1, computations and pauses from these.
const (
	coreTracks  = 1 << 20
	pauseTracks = 1 << 21
)

func (t *timeline) flows(r *Run) {
	list := make([]*FlowResult, len(r.Flows))
	for i := range r.Flows {
		list[i] = &r.Flows[i]
	}
	slices.SortStableFunc(list, func(a, b *FlowResult) int { return cmp.Compare(a.Start, b.Start) })
	free := make(map[string][]model.Time) // by host: when each of its tracks is free
	for _, f := range list {
		pid := t.node(f.Src)
		end := f.Finish
		if !f.Finished {
			end = max(r.End, f.Start)
		}
		tracks := free[f.Src]
		tid := slices.IndexFunc(tracks, func(at model.Time) bool { return at <= f.Start })
		if tid < 0 {
			tid = len(tracks)
			tracks = append(tracks, 0)
			t.track(pid, tid+1, fmt.Sprintf("flows %d", tid+1))
		}
		tracks[tid] = end
		free[f.Src] = tracks
		t.write(traceEvent{
			Name: "to " + f.Dst, Phase: "X", At: micros(f.Start), For: lengthMicros(end.Sub(f.Start)), PID: pid, TID: tid + 1,
			Args: map[string]any{
				"flow": f.Key.String(), "bytes": int64(f.Bytes), "group": f.Group, "slowdown": f.Slowdown(),
				"retransmitted": f.Retransmitted, "finished": f.Finished,
			},
		})
	}
}

func (t *timeline) computations(r *Run) {
	named := make(map[[2]int]bool)
	for _, c := range r.Computations {
		pid, tid := t.node(c.Host), coreTracks+int(c.Core)
		if !named[[2]int{pid, tid}] {
			named[[2]int{pid, tid}] = true
			t.track(pid, tid, fmt.Sprintf("core %d", c.Core))
		}
		t.write(traceEvent{
			Name: "compute", Phase: "X", At: micros(c.Start), For: lengthMicros(c.Finish.Sub(c.Start)), PID: pid, TID: tid,
			Args: map[string]any{"planned_us": *lengthMicros(c.Planned), "group": c.Group},
		})
	}
}

func (t *timeline) pauses(r *Run) {
	tids := make(map[string]int)
	for _, q := range r.pausedQueues() {
		pid := t.node(q.node)
		tids[q.node]++
		tid := pauseTracks + tids[q.node]
		t.track(pid, tid, fmt.Sprintf("%s priority %d paused", portName(q.node, q.port, q.iface), q.priority))
		for _, s := range q.spans {
			t.write(traceEvent{Name: "paused", Phase: "X", At: micros(s.from), For: lengthMicros(s.length()), PID: pid, TID: tid})
		}
	}
}

// queues writes the ports with the deepest queues, as the summary lists them.
func (t *timeline) queues(r *Run) {
	deepest := make(map[string]bool)
	for _, p := range r.Summarize().Deepest {
		deepest[portName(p.Node, p.Port, p.Interface)] = true
	}
	for i := range r.Ports {
		p := &r.Ports[i]
		name := portName(p.Node, p.Port, p.Interface)
		if !deepest[name] {
			continue
		}
		pid := t.node(p.Node)
		for _, s := range p.Samples {
			t.write(traceEvent{Name: "queue of " + name, Phase: "C", At: micros(s.At), PID: pid, Args: map[string]any{"bytes": int64(s.Queue)}})
		}
	}
}
