package record

import (
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// FlowSum is a flow over a range: the sums of its slots, and its losses.
type FlowSum struct {
	Flow        model.FlowKey
	Src, Dst    string    // hosts; empty if outside the fabric
	First, Last time.Time // start of the first slot, end of the last one
	Slots       uint64
	Packets     uint64
	Bytes       uint64
	Lost        uint64   // packets
	Exact       bool     // all counts were decoded, none estimated
	Samples     uint64   // of packets, that the counts are estimated from; 0: none
	Path        []string // switches of the newest slot
	// Switches are those of all slots, Hops is the length of the longest path, Paths
	// the number of different paths.
	Switches    []string
	Hops, Paths int
}

// Duration is the time from First to Last.
func (s *FlowSum) Duration() time.Duration { return s.Last.Sub(s.First) }

// Rate is the mean rate from First to Last in bits per second; 0 without a duration.
func (s *FlowSum) Rate() float64 {
	d := s.Duration()
	if d <= 0 {
		return 0
	}
	return float64(s.Bytes) * 8e9 / float64(d)
}

// LostShare is the share of its packets that were lost.
func (s *FlowSum) LostShare() float64 {
	if s.Packets == 0 {
		return 0
	}
	return min(1, float64(s.Lost)/float64(s.Packets))
}

// SampledError is the relative error of an estimate from packet samples at 95 %
// confidence: 1.96 standard deviations of a Poisson count. Without samples it is 0.
func SampledError(samples uint64) float64 {
	if samples == 0 {
		return 0
	}
	return 1.96 / math.Sqrt(float64(samples))
}

// FlowSumQuery asks for the flows of a range in the order of a sum, the largest first.
// Flows of the same sum have an order of the store's own, which stays.
type FlowSumQuery struct {
	From, To time.Time // From is inclusive, To exclusive
	// Node restricts the slots to those of flows to, from or through it, and the losses
	// to those before and after it.
	Node   string
	Filter FlowFilter
	Sort   FlowSort
	Limit  int // of flows; 0 is the store's limit, which no page exceeds
	// After is the Next of the previous page.
	After string
}

// FlowFilter selects flows by their sums.
type FlowFilter struct {
	Text string // one for each meaning; empty: every flow
	// Where and Match mean the same: a store uses what it can.
	Where *Condition
	Match func(*FlowSum) bool
	Jobs  []Job // that Where may name
}

// Job is work of several hosts. A flow is of the first job that has both its ends.
type Job struct {
	Name  string
	Hosts []string
	// Learned says that NCCL's records show it; else it is of the configuration.
	Learned bool
	// Owns reports whether an address is the job's, whichever host has it; may be nil.
	Owns func(model.Addr) bool
}

// Has reports whether an end of a flow, a host and an address, is the job's.
func (j *Job) Has(host string, a model.Addr) bool {
	return host != "" && slices.Contains(j.Hosts, host) || j.Owns != nil && j.Owns(a)
}

// FlowSort is what flows are ordered by.
type FlowSort string

// Orders.
const (
	ByBytes     FlowSort = "bytes"
	ByPackets   FlowSort = "packets"
	ByLost      FlowSort = "lost"
	ByLostShare FlowSort = "lost_share"
	ByRate      FlowSort = "rate"
	ByDuration  FlowSort = "duration"
	ByNewest    FlowSort = "newest"
)

// FlowTotals are the sums of all flows that match.
type FlowTotals struct {
	Flows, Slots, Packets, Bytes, Lost uint64
	// FlowsKnown is false if the flows were not counted.
	FlowsKnown bool
}

// FlowSums is a page of flows, and what all pages together have.
type FlowSums struct {
	Page[FlowSum]
	Totals FlowTotals
	// Partial says that slots of the range had more flows than were stored.
	Partial bool
	// KeptFrom and KeptTo are the first and the last slot of any flow in the store; zero
	// without any.
	KeptFrom, KeptTo time.Time
}

// FlowGrouping is what flows are grouped by.
type FlowGrouping string

// Groupings. Those of a link count a flow on each link of its path.
const (
	GroupByHost    FlowGrouping = "host"     // sender
	GroupByDstHost FlowGrouping = "dst_host" // receiver
	GroupByJob     FlowGrouping = "job"
	GroupByLink    FlowGrouping = "link" // "switch>next"
	GroupByPath    FlowGrouping = "path" // switches, with " > " between them
	GroupByClass   FlowGrouping = "class"
)

// FlowGroupQuery asks for the sums of groups of flows, the largest first.
type FlowGroupQuery struct {
	From, To time.Time
	Node     string
	Filter   FlowFilter
	Sort     FlowSort // by bytes, packets or lost
	GroupBy  FlowGrouping
	// Merge joins groups, such as hosts to racks; nil: none.
	Merge map[string]string
	Limit int
	// Step asks for the bytes of each group over time; 0: none.
	Step time.Duration
}

// FlowGroup is the sums of a group.
type FlowGroup struct {
	Name                               string // empty: flows without such a thing
	Flows, Slots, Packets, Bytes, Lost uint64
	Series                             []uint64 // bytes by step
}

// FlowGroups are the largest groups, and what all of them together have.
type FlowGroups struct {
	Groups  []FlowGroup
	Omitted int // groups beyond the limit
	Totals  FlowTotals
	Series  []uint64 // bytes of all flows by step
	Partial bool

	KeptFrom, KeptTo time.Time
}
