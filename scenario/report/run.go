// Package report writes the results of a run for people and scripts: fct.txt,
// pfc.txt and qlen.txt in the columns of the HPCC simulator, CSV, a summary as
// text or JSON, a timeline for Perfetto, and one HTML page with plots. It reads plain data, so it depends
// neither on the simulator nor on a diagnosis; the scenario fills a Run.
//
// Equal Runs give equal bytes. Wall is the one field that a rerun with the same
// seed does not reproduce; a zero Wall keeps it out of every output.
package report

import (
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Run is the result of one run. Every slice may be empty, and the zero Run can
// be written.
type Run struct {
	Title      string
	Fabric     string     // one line: "fat-tree k=4: 16 hosts, 20 switches, 48 links of 100Gb/s"
	Seed       uint64     // reproduces the run
	End        model.Time // when the simulation stopped
	PacketHops uint64     // links crossed, summed over packets
	Wall       time.Duration
	Interval   time.Duration // between two samples of a port; with zero, utilisation is unknown

	Flows []FlowResult
	// Computations are what hosts computed, by the time they ended.
	Computations []Computation
	Pauses       []PauseEvent // in the order they were received
	Drops        []Drop
	Ports        []PortSeries
	Notes        []string // what a reader must know: "PFC cannot fire: …"

	Diagnoses []string // verdicts, in sentences
	Injected  []string // injected causes, in sentences
	Expected  []Judged
	Verdict   string // empty without expectations
}

// Judged is an expectation and its outcome.
type Judged struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Pass bool   `json:"pass"`
}

// FlowResult is the result of one flow.
type FlowResult struct {
	Src, Dst      string        // names of the hosts
	Key           model.FlowKey // addresses and ports
	Priority      model.Priority
	Transport     string // "dcqcn", "hpcc", "tcp", "udp" …
	Group         string // the flow's traffic item: "incast", "background"; may be empty
	Bytes         model.Bytes
	Delivered     model.Bytes // that reached the destination in order; not read when Finished
	Retransmitted uint64      // retransmitted packets
	Start         model.Time
	Finish        model.Time // not read unless Finished
	Finished      bool
	// Ideal is the completion time of the flow alone on the fabric. At zero it
	// is unknown, and the flow has no slowdown.
	Ideal time.Duration
}

// FCT returns the flow completion time, zero for a flow that did not finish.
func (f *FlowResult) FCT() time.Duration {
	if !f.Finished {
		return 0
	}
	return f.Finish.Sub(f.Start)
}

// Slowdown returns FCT over Ideal, at least 1: a flow cannot beat the empty
// fabric, except by rounding. It is zero without one: the flow did not finish,
// or Ideal is unknown.
func (f *FlowResult) Slowdown() float64 {
	if !f.Finished || f.Ideal <= 0 {
		return 0
	}
	return max(1, float64(f.FCT())/float64(f.Ideal))
}

// slowdownSoFar returns Slowdown, and for an unfinished flow its lower bound at
// the end of the run.
func (f *FlowResult) slowdownSoFar(end model.Time) float64 {
	if !f.Finished && f.Ideal > 0 {
		return max(1, float64(end.Sub(f.Start))/float64(f.Ideal))
	}
	return f.Slowdown()
}

// delivered returns what counts as goodput.
func (f *FlowResult) delivered() model.Bytes {
	if f.Finished {
		return f.Bytes
	}
	return f.Delivered
}

// Computation is one computation of a host.
type Computation struct {
	Host          string
	Core          uint8
	Group         string
	Start, Finish model.Time
	Planned       time.Duration // how long it takes if nothing slows its host
}

// PauseEvent is a PFC frame for one priority at its receiver: Port is the
// egress port that must pause, and its neighbour sent the frame.
type PauseEvent struct {
	At     model.Time
	Node   string
	ID     model.NodeID
	Switch bool // or a host
	Port   model.PortID
	// Interface is the port's name, such as "Ethernet8"; may be empty.
	Interface string
	Priority  model.Priority
	Pause     bool // or a resume
	// Hold is how long the frame pauses without a refresh; zero holds until a
	// resume. A later frame replaces it.
	Hold time.Duration
}

// Drop counts the packets that one port, or at port 0 the node itself, dropped
// for one reason.
type Drop struct {
	Node string
	ID   model.NodeID
	Port model.PortID
	// Interface is the port's name; may be empty.
	Interface string
	Reason    string
	Packets   uint64
}

// PortSeries is one egress port over time, sampled every Run.Interval.
type PortSeries struct {
	Node      string
	ID        model.NodeID
	Port      model.PortID
	Interface string     // the port's name; may be empty
	Peer      string     // name of the neighbour; may be empty
	Rate      model.Rate // with zero, utilisation is unknown
	Samples   []Sample   // by time
}

// Sample is what a port did in the interval that ends at At.
type Sample struct {
	At     model.Time
	Queue  model.Bytes // maximum in the interval, all priorities: no burst is missed
	Tx     model.Bytes // sent in the interval
	Paused float64     // share of the interval with some priority paused, 0 to 1
}

// portName returns "s1 Ethernet8", "s1:3" without an interface name, and "s1"
// for the node itself.
func portName(node string, port model.PortID, iface string) string {
	switch {
	case port == 0:
		return node
	case iface != "":
		return node + " " + iface
	}
	return node + ":" + strconv.FormatUint(uint64(port), 10)
}

// start returns where plots start: at zero, or just before the first event if
// that is much later. HPCC's workloads start at two seconds, and plots from
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

// firstStart returns when the first flow starts, the end of the run without
// flows.
func (r *Run) firstStart() model.Time {
	first := r.End
	for i := range r.Flows {
		first = min(first, r.Flows[i].Start)
	}
	return first
}
