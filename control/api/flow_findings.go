package api

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// FlowFindings is a page of the findings of the flow analyses in a time range. The
// same finding in several slots is one item.
type FlowFindings struct {
	From            time.Time           `json:"from"`
	To              time.Time           `json:"to"`
	Paths           []PathFinding       `json:"paths" doc:"Forwarding faults, oldest first"`
	Losses          []LinkLoss          `json:"losses" doc:"Losses by link, most packets first"`
	Imbalances      []ECMPImbalance     `json:"imbalances" doc:"Equal-cost ports with unequal loads, highest ratio first"`
	Bursts          []MicroburstFinding `json:"bursts" doc:"Microbursts, oldest first"`
	PeriodicSenders []PeriodicSender    `json:"periodic_senders" doc:"Senders that burst at even intervals, oldest first"`
	Omitted         uint64              `json:"omitted" doc:"Findings that the controller has evicted since it started; 0 if all of them ended before the range"`
	Next            string              `json:"next,omitempty" doc:"Pass as after to get the next page; absent on the last page. Findings that change between two pages may be in both or in none"`
}

// FlowFindingsQuery selects flow findings. A page has findings of the lists in
// their order: forwarding faults first.
type FlowFindingsQuery struct {
	Range
	Paging
}

// page keeps the findings of one page, which begins after skip findings, and
// returns how many are in it and before it; 0 on the last page.
func (f *FlowFindings) page(skip, limit int) (next int) {
	end, total := skip+limit, 0
	f.Paths = pageOf(f.Paths, &total, skip, end)
	f.Losses = pageOf(f.Losses, &total, skip, end)
	f.Imbalances = pageOf(f.Imbalances, &total, skip, end)
	f.Bursts = pageOf(f.Bursts, &total, skip, end)
	f.PeriodicSenders = pageOf(f.PeriodicSenders, &total, skip, end)
	if total <= end {
		return 0
	}
	return end
}

// pageOf returns the part of a list from skip to end, of all lists in a row, of
// which total items are before it.
func pageOf[T any](list []T, total *int, skip, end int) []T {
	from, to := skip-*total, end-*total
	*total += len(list)
	return list[min(max(from, 0), len(list)):min(max(to, 0), len(list))]
}

// Append adds the findings of the next page.
func (f *FlowFindings) Append(next *FlowFindings) {
	f.Paths = append(f.Paths, next.Paths...)
	f.Losses = append(f.Losses, next.Losses...)
	f.Imbalances = append(f.Imbalances, next.Imbalances...)
	f.Bursts = append(f.Bursts, next.Bursts...)
	f.PeriodicSenders = append(f.PeriodicSenders, next.PeriodicSenders...)
	f.Omitted, f.Next = max(f.Omitted, next.Omitted), next.Next
}

// FindingTime is when a finding was observed. A controller keeps findings in parts
// of up to a minute, and returns every part that overlaps the range.
type FindingTime struct {
	First time.Time `json:"first" doc:"Start of the first slot"`
	Last  time.Time `json:"last" doc:"End of the last slot"`
	Slots int       `json:"slots" doc:"Slots with the finding; of losses those in which the packets may have been lost"`
}

// AffectedFlows are the flows of a finding.
type AffectedFlows struct {
	Flows     []model.FlowKey `json:"flows" doc:"Ascending"`
	Truncated bool            `json:"flows_truncated" doc:"There were more flows than the controller keeps of a finding"`
}

// PathFinding is a forwarding fault at one location.
type PathFinding struct {
	Kind      string `json:"kind" enum:"loop,blackhole,silent-link,wrong-route"`
	Confirmed bool   `json:"confirmed" doc:"Nothing harmless explains it; false: suspected"`
	Stalled   bool   `json:"stalled" doc:"PFC paused the port: its packets were stuck, not dropped"`
	FindingTime
	At       PortRef  `json:"at" doc:"Switch that saw the packets last, and their egress port if known; of a loop the switch where they enter"`
	Next     *PortRef `json:"next,omitempty" doc:"Where they should have arrived; absent if that switch does not report"`
	Switches []string `json:"switches" doc:"Switches of a loop, in path order"`
	AffectedFlows
	PassedFlows int `json:"passed_flows" doc:"Flows that got through the same port in the first slot; of a wrong route those that the switch sent as intended"`
}

// LinkLoss is the packet loss between two switches.
type LinkLoss struct {
	From PortRef  `json:"from" doc:"Egress port; without a number if unknown"`
	To   *PortRef `json:"to,omitempty" doc:"Ingress port; absent if no switch saw the packets again"`
	FindingTime
	LostPackets uint64 `json:"lost_packets"`
	SentPackets uint64 `json:"sent_packets" doc:"Of the flowlets that ended while the link lost packets"`
	Pattern     string `json:"pattern" enum:"scattered,selective,whole-path" doc:"scattered: as many flowlets as random drops would affect; selective: few flowlets, with high loss; whole-path: counters do not show the link, from and to are the first and the last switch"`
	AffectedFlows
}

// ECMPImbalance is a group of equal-cost ports with unequal loads. Its numbers are
// those of the window with the highest ratio.
type ECMPImbalance struct {
	Switch string `json:"switch"`
	FindingTime
	Cause string          `json:"cause" enum:"hash,burst" doc:"hash: flows are spread less evenly than by a random hash; burst: some flows are much larger"`
	Ratio float64         `json:"ratio" doc:"Packets of the busiest port, divided by the mean"`
	Ports []PortShare     `json:"ports"`
	Heavy []model.FlowKey `json:"heavy_flows" doc:"Largest flows of the busiest port, largest first, for cause burst; at most as many as the controller keeps of a finding"`
}

// PortShare is the traffic of one port of an equal-cost group.
type PortShare struct {
	PortRef
	Flows   int    `json:"flows"`
	Packets uint64 `json:"packets"`
}

// MicroburstFinding is a short burst at a port to a host.
type MicroburstFinding struct {
	Port PortRef `json:"port"`
	FindingTime
	LoadShare  float64 `json:"load_share" doc:"Load in the first slot, as a share of the port's rate"`
	UsualShare float64 `json:"usual_share" doc:"Median load of the slots before"`
	NewFlows   int     `json:"new_flows" doc:"Flows not seen at this port in the slot before"`
	AffectedFlows
}

// PeriodicSender is a sender whose bursts come at even intervals.
type PeriodicSender struct {
	Port   PortRef `json:"port"`
	Source string  `json:"source" doc:"Address of the sender"`
	FindingTime
	Bursts    int     `json:"bursts"`
	PeriodNs  int64   `json:"period_ns"`
	LoadShare float64 `json:"load_share" doc:"Load in a burst's slot, as a share of the port's rate"`
	MeanShare float64 `json:"mean_share" doc:"Mean load from the first to the last burst"`
}

// FlowAnalyses is the log of what the flow analyses found.
type FlowAnalyses interface {
	// FlowFindings returns the findings that overlap a range. The caller owns the
	// result.
	FlowFindings(from, to time.Time) FlowFindings
}

// maxFindingSkip is more findings than a controller keeps.
const maxFindingSkip = 1 << 30

var errNoFlowAnalyses = fmt.Errorf("flow findings: this controller does not analyse flows: %w", ErrUnsupported)

func (s *Server) flowFindingRoutes() {
	get(s, "/flow-findings", "list-flow-findings", "Flows",
		"Findings of the flow analyses: forwarding faults, losses by link, ECMP imbalance, bursts",
		func(_ context.Context, in *FlowFindingsQuery) (f FlowFindings, err error) {
			if s.deps.FlowAnalyses == nil {
				return f, errNoFlowAnalyses
			}
			q, err := s.query(in.Range, in.Paging)
			if err != nil {
				return f, err
			}
			skip := 0
			if q.After != "" {
				if skip, err = strconv.Atoi(q.After); err != nil || skip <= 0 || skip > maxFindingSkip {
					return f, fmt.Errorf("after %q, want the next of a previous page: %w", in.After, ErrInvalid)
				}
			}
			f = s.deps.FlowAnalyses.FlowFindings(q.From, q.To)
			f.From, f.To = q.From, q.To
			if next := f.page(skip, q.Limit); next > 0 {
				f.Next = encodeCursor(q, strconv.Itoa(next))
			}
			return f, nil
		})
}
