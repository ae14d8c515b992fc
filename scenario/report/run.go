// Package report turns the results of a run into what people and scripts read:
// fct.txt and pfc.txt in the columns of the HPCC simulator, CSV, a summary as
// text or JSON, and one HTML page with plots. It reads plain data, so it knows
// neither the simulator nor a diagnosis; the scenario fills a Run.
//
// Equal Runs give equal bytes. Wall is the one field that a replay of the same
// seed does not reproduce; a zero Wall keeps it out of every output.
package report

import (
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Run is what happened in one run. Every slice may be empty, and the zero Run
// can be written.
type Run struct {
	Title      string
	Fabric     string     // one line: "fat-tree k=4: 16 hosts, 20 switches, 48 links of 100Gb/s"
	Seed       uint64     // replays the run
	End        model.Time // when the simulation stopped
	PacketHops uint64     // links crossed, summed over packets
	Wall       time.Duration
	Interval   time.Duration // between two samples of a port; zero leaves utilisation unknown

	Flows  []FlowResult
	Pauses []PauseEvent // in the order they were received
	Drops  []Drop
	Ports  []PortSeries
	Notes  []string // what a reader must know: "PFC cannot fire because …"

	Injected []string // what was made to go wrong, in sentences
	Expected []Judged
	Verdict  string // empty where nobody judged
}

// Judged is an expectation and what came of it.
type Judged struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Pass  bool   `json:"met"`
}

// FlowResult is what became of one flow.
type FlowResult struct {
	Src, Dst      string        // names of the hosts
	Key           model.FlowKey // addresses and ports
	Priority      model.Priority
	Transport     string // "dcqcn", "tcp", "udp"
	Group         string // what the flow was made for: "incast", "background"; may be empty
	Bytes         model.Bytes
	Delivered     model.Bytes // that reached the destination in order; not read when Finished
	Retransmitted uint64      // packets sent again
	Start         model.Time
	Finish        model.Time // not read unless Finished
	Finished      bool
	// Ideal is how long the flow would take alone on the fabric. At zero it is
	// unknown, and the flow enters no slowdown figure.
	Ideal time.Duration
}

// FCT is the flow completion time, zero for a flow that did not finish.
func (f *FlowResult) FCT() time.Duration {
	if !f.Finished {
		return 0
	}
	return f.Finish.Sub(f.Start)
}

// Slowdown is FCT over Ideal and at least 1: a flow cannot beat the empty
// fabric, it can only differ by rounding. It is zero where there is none: the
// flow did not finish, or Ideal is unknown.
func (f *FlowResult) Slowdown() float64 {
	if !f.Finished || f.Ideal <= 0 {
		return 0
	}
	return max(1, float64(f.FCT())/float64(f.Ideal))
}

// slowdownSoFar is Slowdown, and for an unfinished flow what it has reached at
// the end of the run: a lower bound.
func (f *FlowResult) slowdownSoFar(end model.Time) float64 {
	if !f.Finished && f.Ideal > 0 {
		return max(1, float64(end.Sub(f.Start))/float64(f.Ideal))
	}
	return f.Slowdown()
}

// delivered is what counts as goodput.
func (f *FlowResult) delivered() model.Bytes {
	if f.Finished {
		return f.Bytes
	}
	return f.Delivered
}

// PauseEvent is a PFC frame for one priority, seen by the node that received
// it: Port is the egress port that must stop, and its neighbour sent the frame.
type PauseEvent struct {
	At       model.Time
	Node     string
	ID       model.NodeID
	Switch   bool // or a host
	Port     model.PortID
	Priority model.Priority
	Pause    bool // or a resume
	// Hold is how long the frame pauses when nothing follows; at zero it holds
	// until a resume. A later frame replaces what is left of it.
	Hold time.Duration
}

// Drop counts the packets that one port, or at port 0 the node itself, dropped
// for one reason.
type Drop struct {
	Node    string
	ID      model.NodeID
	Port    model.PortID
	Reason  string
	Packets uint64
}

// PortSeries is one egress port over time, sampled every Run.Interval.
type PortSeries struct {
	Node    string
	ID      model.NodeID
	Port    model.PortID
	Peer    string     // name of the neighbour; may be empty
	Rate    model.Rate // zero leaves utilisation unknown
	Samples []Sample   // by time
}

// Sample is what a port did in the interval that ends at an instant.
type Sample struct {
	At     model.Time
	Queue  model.Bytes // the most that waited at any moment of it, all priorities: no burst is missed
	Tx     model.Bytes // sent in the interval
	Paused float64     // share of the interval with some priority paused, 0 to 1
}

// portName prints "s1:3", and "s1" for the node itself.
func portName(node string, port model.PortID) string {
	if port == 0 {
		return node
	}
	return node + ":" + strconv.Itoa(int(port))
}

// start is where plots begin: at zero, or where the run first shows something
// if that is much later. HPCC's workloads begin two seconds in, and plots from
// zero would be mostly idle time.
func (r *Run) start() model.Time {
	first := r.firstStart()
	for i := range r.Pauses {
		first = min(first, r.Pauses[i].At)
	}
	if first >= r.End || first < r.End/20 {
		return 0
	}
	return first
}

// firstStart is when the first flow starts, the end of the run without flows.
func (r *Run) firstStart() model.Time {
	first := r.End
	for i := range r.Flows {
		first = min(first, r.Flows[i].Start)
	}
	return first
}
