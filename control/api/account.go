package api

import "github.com/weft-telemetry/weft/model"

// Account says how long a late packet waited for which cause.
type Account struct {
	Text     string        `json:"text" doc:"The account as a sentence"`
	LateNs   int64         `json:"late_ns" doc:"By how much the packet was late, or is so far if it is in flight"`
	InFlight bool          `json:"in_flight"`
	Share    float64       `json:"explained_share" minimum:"0" maximum:"1" doc:"Share of the lateness that has a known cause"`
	Terms    []AccountTerm `json:"terms" doc:"Longest first; they sum to the lateness, but for terms below a hundredth of it"`
	Timeline Timeline      `json:"timeline" doc:"What the account rests on"`
}

// AccountTerm is a part of the lateness with one cause.
type AccountTerm struct {
	Kind     string        `json:"kind" enum:"contention,host injection,deadlock,unexplained"`
	Location *PortRef      `json:"location,omitempty" doc:"Port where the cause is; absent if unknown"`
	Why      string        `json:"why,omitempty" doc:"Why it is unexplained"`
	Ns       int64         `json:"ns"`
	MinNs    int64         `json:"min_ns" doc:"What holds whatever the errors of the clocks"`
	MaxNs    int64         `json:"max_ns"`
	Via      []PortRef     `json:"via" doc:"Paused ports from the packet's path to the location"`
	Culprits []Participant `json:"culprits" doc:"Flows that contend, by share of the backlog"`
}

// Timeline is the queues of an account over time, from when the first cause began until
// the packet arrived or was found missing.
type Timeline struct {
	LengthNs int64            `json:"length_ns"`
	Rows     []TimelineRow    `json:"rows" doc:"The packet's path in order, then where pauses came from"`
	Senders  []TimelineSender `json:"senders" doc:"What flows sent that were in paused or congested queues, by the counters of their first switch"`
	// OmittedSenders is the number of such flows beyond the largest.
	OmittedSenders int    `json:"omitted_senders,omitempty" doc:"Such flows beyond the largest"`
	Text           string `json:"text" doc:"The rows drawn in characters: █ paused, ░ congested, ▓ ▒ the same with the packet in it, * packet, ? no report"`
}

// TimelineRow is a queue over time.
type TimelineRow struct {
	Port      PortRef `json:"port"`
	Reported  bool    `json:"reported" doc:"Its switch reported"`
	Paused    []Span  `json:"paused"`
	Congested []Span  `json:"congested"`
	Packet    []Span  `json:"packet" doc:"While the packet was in it"`
}

// Span is an interval of a timeline.
type Span struct {
	FromNs int64 `json:"from_ns" doc:"Since the timeline began"`
	ToNs   int64 `json:"to_ns"`
}

// TimelineSender is what a flow sent.
type TimelineSender struct {
	FlowRef
	Priority  model.Priority `json:"priority"`
	Switch    string         `json:"switch" doc:"Whose counters they are: the first on the path that reported"`
	Outs      []PortRef      `json:"outs" doc:"Egress ports of the switches that reported it"`
	Intervals []SentInterval `json:"intervals" doc:"From the first to the last packet of each epoch"`
}

// SentInterval is the packets of a flow in an interval. It may begin before the
// timeline.
type SentInterval struct {
	Span
	Packets uint64 `json:"packets"`
	Bytes   int64  `json:"bytes" doc:"Ethernet header to payload, no FCS"`
}
